//! Answers to a child's questions for permission.

use serde_json::{Value, json};

use crate::Permission;

/// What a question was answered with.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Answer {
    /// What is sent.
    pub(crate) outcome: Value,
    /// Whether the child may do what it asked for.
    pub(crate) allowed: bool,
}

/// Chooses among a question's options by their kind, one that is for one time first. Where none is of the kind that is
/// wanted, or what is there is no option at all, the question is answered as cancelled, which allows nothing.
pub(crate) fn answer(permission: Permission, options: &Value) -> Answer {
    let kinds = match permission {
        Permission::Allow => ["allow_once", "allow_always"],
        Permission::Reject => ["reject_once", "reject_always"],
    };
    let options = options.as_array().map_or(&[][..], Vec::as_slice);
    let of = |kind: &str| {
        let option = options.iter().find(|option| option["kind"] == kind && option["optionId"].is_string())?;
        option["optionId"].as_str()
    };
    match kinds.into_iter().find_map(of) {
        Some(id) => Answer {
            outcome: json!({ "outcome": { "outcome": "selected", "optionId": id } }),
            allowed: permission == Permission::Allow,
        },
        None => cancelled(),
    }
}

/// The answer where nobody wants to know any more.
pub(crate) fn cancelled() -> Answer {
    Answer { outcome: json!({ "outcome": { "outcome": "cancelled" } }), allowed: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(permission: Permission, options: Value, chosen: Option<&str>) {
        let answer = answer(permission, &options);
        assert_eq!(answer.outcome["outcome"]["optionId"].as_str(), chosen, "{options}");
        assert_eq!(answer.allowed, chosen.is_some() && permission == Permission::Allow);
        assert_eq!(answer.outcome["outcome"]["outcome"], if chosen.is_some() { "selected" } else { "cancelled" });
    }

    fn option(kind: &str, id: &str) -> Value {
        json!({ "kind": kind, "optionId": id, "name": "x" })
    }

    // D-63
    #[test]
    fn options_are_chosen_by_kind_and_once_where_there_is_the_choice() {
        let all = ["allow_always", "allow_once", "reject_always", "reject_once"];
        let named: Vec<_> = all.iter().map(|kind| option(kind, kind)).collect();
        check(Permission::Allow, named.clone().into(), Some("allow_once"));
        check(Permission::Reject, named.into(), Some("reject_once"));
        check(Permission::Allow, json!([option("allow_always", "Y")]), Some("Y"));
        check(Permission::Reject, json!([option("reject_always", "N")]), Some("N"));
        let lying = json!([option("reject_once", "allow"), option("allow_once", "reject")]);
        check(Permission::Reject, lying.clone(), Some("allow"));
        check(Permission::Allow, lying, Some("reject"));
        let two = json!([option("allow_once", "1"), option("allow_once", "2")]);
        check(Permission::Allow, two, Some("1"));
    }

    // D-63
    #[test]
    fn what_cannot_be_chosen_is_not_allowed() {
        let strange = [
            Value::Null,
            json!({}),
            json!([]),
            json!("allow_once"),
            json!([null, 7, {}, { "kind": "allow_once" }, { "kind": "allow_once", "optionId": 7 }, { "optionId": "y" }]),
        ];
        for options in strange {
            check(Permission::Allow, options.clone(), None);
            check(Permission::Reject, options, None);
        }
        check(Permission::Reject, json!([option("allow_once", "y")]), None);
        check(Permission::Allow, json!([option("reject_once", "n")]), None);
    }
}
