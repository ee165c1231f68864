//! Whatever stands in a project's file, reading it ends, and says what is wrong in lines that a person can read.

use proptest::prelude::*;

use crate::world::World;

const WHOLE: &str = r#"model = "a/b"
[sandbox]
default = "workspace-write"
protected = ["x", 'y']
[permission.presets.careful]
sandbox = "read-only"
approval = "ask"
[budget]
tokens = 2_000
[[subagent]]
tool = "t"
provider = "spawn"
persona = "You review {{label}}."
tools = { deny = ["write"] }
output_schema = { type = "object", properties = { n = { minimum = 0.5 } } }
"#;

fn check(user: &str, project: &str) {
    if let Err(wrong) = World::of(user, project).load() {
        assert!(!wrong.is_empty() && wrong.len() <= 50);
        for told in wrong {
            assert!(told.contains("config.toml:") && !told.contains('\n') && told.len() < 2000, "{told}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_file_with_a_hole(from in 0..WHOLE.len(), len in 0..40usize, put in "[\\PC\n\"'{}\\[\\]=.]{0,8}") {
        let end = (from + len).min(WHOLE.len());
        let text = format!("{}{put}{}", &WHOLE[..from], &WHOLE[end..]);
        check(&text, "");
        check("", &text);
    }

    #[test]
    fn any_text(text in "[a-z_.\\[\\]{}=\"'#,0-9 \n-]{0,80}") {
        check(&text, &text);
    }
}
