use llm::Content;

use crate::play::cut;
use crate::program::{Call, Step};
use crate::turn::{Done, Failed, Turn};

/// Lines of one result, characters of one line, bytes of a report.
const MAX_LINES: usize = 12;
const MAX_LINE: usize = 200;
const MAX_REPORT: usize = 16 * 1024;

/// What every call of the turn did: a line each, and more of what children, commands and searches said.
pub(crate) fn report(steps: &[Step<'_>], turn: &Turn<'_>) -> String {
    let done = turn.done();
    if done.is_empty() {
        return "done, and no tool was called".into();
    }
    let mut report = String::new();
    for (at, done_call) in done.iter().enumerate() {
        if report.len() > MAX_REPORT {
            report.push_str(&format!("\n… and {} more", done.len() - at));
            break;
        }
        if at > 0 {
            report.push('\n');
        }
        add(&mut report, steps, done_call);
    }
    report
}

/// What was told of things that happened, each as a line and some more.
pub(crate) fn noted(heard: &[String]) -> String {
    let mut noted = String::new();
    for notice in heard {
        noted.push_str(if noted.is_empty() { "noted" } else { "\nnoted" });
        let lines = notice.lines().filter(|line| !line.starts_with("<notice>") && !line.starts_with("</notice>"));
        add_lines(&mut noted, &lines.collect::<Vec<_>>(), MAX_LINES);
    }
    noted
}

fn add(report: &mut String, steps: &[Step<'_>], Done { step, index, call, result }: &Done<'_>) {
    let asked = steps.get(*step).and_then(|step| step.calls.get(*index)).filter(|asked| asked.tool() == &*call.name);
    let label = asked.map_or_else(|| format!("call {}", cut(&call.name, 60)), |asked| asked.label());
    report.push_str(&label);
    let Some((content, failed)) = result else {
        report.push_str(": no result");
        return;
    };
    report.push_str(match failed {
        Failed::Yes => ": error",
        Failed::No => ": ok",
    });
    let max_lines = match asked {
        Some(Call::Write { .. } | Call::Edit { .. }) if *failed == Failed::No => return,
        Some(Call::Write { .. } | Call::Edit { .. } | Call::Read { .. } | Call::List { .. })
            if *failed == Failed::Yes =>
        {
            1
        }
        _ => MAX_LINES,
    };
    let text = text_of(content);
    add_lines(report, &text.trim().lines().collect::<Vec<_>>(), max_lines);
}

fn add_lines(report: &mut String, lines: &[&str], max_lines: usize) {
    match lines {
        [] => {}
        [line, ..] if lines.len() == 1 || max_lines == 1 => {
            report.push_str(": ");
            report.push_str(&cut(line, MAX_LINE));
        }
        lines => {
            for line in lines.iter().take(max_lines) {
                report.push_str("\n  ");
                report.push_str(&cut(line, MAX_LINE));
            }
            if lines.len() > max_lines {
                report.push_str(&format!("\n  … {} more lines", lines.len() - max_lines));
            }
        }
    }
}

fn text_of(content: &[Content]) -> String {
    let parts = content.iter().map(|part| match part {
        Content::Text { text } => &**text,
        Content::Image { .. } => "(a picture)",
        Content::Thinking { .. } | Content::ToolCall(_) | Content::ToolResult { .. } => "",
    });
    parts.collect::<Vec<_>>().join("\n")
}
