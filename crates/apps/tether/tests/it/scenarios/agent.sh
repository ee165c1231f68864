# An agent of the protocol, with nothing but a shell. What it does when it is asked for a session (`opens`) and for its work
# (`works`) stands in the file beside it. Every frame is a line of its own.

send() { printf '%s\n' "$1"; }
answer() { send "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":$1}"; }
update() { send "{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{\"sessionId\":\"remote\",\"update\":$1}}"; }
say() { update "{\"sessionUpdate\":\"agent_message_chunk\",\"content\":{\"type\":\"text\",\"text\":\"$1\"}}"; }

# Goes on when everything that was said before has been heard: what is not offered is refused in its turn.
heard() {
    send '{"jsonrpc":"2.0","id":"heard","method":"is/it"}'
    read -r refused
}

# Something that leaves its session, and that only a kill ends.
plant() { setsid sh -c 'trap "" TERM HUP INT; while :; do sleep 1000; done' < /dev/null > /dev/null 2>&1 & }

opens() { :; }
. "${0%/*}/does.sh"

while read -r line; do
    id=${line#*'"id":'}
    id=${id%%[,\}]*}
    case $line in
        *'"method":"initialize"'*) answer '{"protocolVersion":1,"agentCapabilities":{}}' ;;
        *'"method":"session/new"'*) opens; answer '{"sessionId":"remote"}' ;;
        *'"method":"session/prompt"'*) works; answer '{"stopReason":"end_turn"}' ;;
    esac
done
