//! A model's mistakes, told so that it can mend them.

use std::borrow::Cow;

use context::Scope;
use schemars::JsonSchema;
use serde::Deserialize;
use tools::*;

use crate::support::{failed, run};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    path: String,
    lines: Option<u32>,
    #[serde(default)]
    all: bool,
    #[serde(default)]
    rest: serde_json::Value,
}

struct Echo;

#[async_trait::async_trait]
impl TypedTool for Echo {
    type Args = Args;

    fn name(&self) -> &str {
        "echo"
    }

    fn description(&self) -> Cow<'_, str> {
        "Says what it was told.".into()
    }

    async fn run(&self, Args { path, lines, all, rest }: Args, _: &Call) -> ToolOutput {
        ToolOutput::text(format!("{path} {lines:?} {all} {rest}"))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Nothing {}

struct Ping;

#[async_trait::async_trait]
impl TypedTool for Ping {
    type Args = Nothing;

    fn name(&self) -> &str {
        "ping"
    }

    fn description(&self) -> Cow<'_, str> {
        "Answers.".into()
    }

    async fn run(&self, Nothing {}: Nothing, _: &Call) -> ToolOutput {
        ToolOutput::text("pong")
    }
}

fn app() -> Scope {
    let app = Scope::root("app");
    register(&app, Echo).unwrap();
    register(&app, Ping).unwrap();
    app
}

#[tokio::test]
async fn what_fits_reaches_the_tool() {
    let app = app();
    let said = run(&app, "echo", r#" {"path":"a\nb","lines":null,"all":true,"rest":[1]} "#).await;
    assert_eq!((said.is_error(), said.to_text().as_str()), (false, "a\nb None true [1]"));
    app.close().await.unwrap();
}

#[tokio::test]
async fn mistakes_name_what_is_wrong_and_what_would_be_right() {
    let app = app();
    let deep = format!(r#"{{"path":"","rest":{}{}}}"#, "[".repeat(10_000), "]".repeat(10_000));
    let mistakes = [
        "{}",
        r#"{"path":1}"#,
        r#"{"path":"a","lines":-1}"#,
        r#"{"path":"a","line":1}"#,
        r#"{"path":"a","path":"b"}"#,
        r#"{"path":"a"} and more"#,
        r#"{"path":"#,
        "path=a",
        "null",
        r#"["a"]"#,
        "\0",
        &deep,
    ];
    let mut told = String::new();
    for arguments in mistakes {
        let output = run(&app, "echo", arguments).await;
        let (code, text) = failed(&output);
        assert_eq!(code, code::INVALID_ARGUMENTS);
        let text = text.strip_prefix("invalid arguments for `echo`: ").expect("the tool is named");
        let what_would_be_right = r#". Expected: {"all"?: boolean, "lines"?: integer, "path": string, "rest"?: any}. Call it again with arguments that fit."#;
        told += text.strip_suffix(what_would_be_right).unwrap_or_else(|| panic!("{text}"));
        told += "\n";
    }
    insta::assert_snapshot!(told, @r"
    missing field `path` at line 1 column 2
    invalid type: integer `1`, expected a string at line 1 column 9
    invalid value: integer `-1`, expected u32 at line 1 column 22
    unknown field `line`, expected one of `path`, `lines`, `all`, `rest` at line 1 column 18
    duplicate field `path` at line 1 column 18
    trailing characters at line 1 column 14
    EOF while parsing a value at line 1 column 8
    expected value at line 1 column 1
    invalid type: null, expected struct Args at line 1 column 4
    they are an array, not an object
    expected value at line 1 column 1
    recursion limit exceeded at line 1 column 145
    ");
    app.close().await.unwrap();
}

#[tokio::test]
async fn nothing_at_all_means_no_arguments() {
    let app = app();
    for arguments in ["", "  \n\t", "{}"] {
        assert_eq!(run(&app, "ping", arguments).await.to_text(), "pong", "{arguments:?}");
    }
    let output = run(&app, "echo", "").await;
    assert!(failed(&output).1.contains("missing field `path`"), "{output:?}");
    let output = run(&app, "ping", r#"{"loud":true}"#).await;
    assert!(failed(&output).1.contains("Expected: {}."), "{output:?}");
    app.close().await.unwrap();
}

#[tokio::test]
async fn arguments_are_read_up_to_a_size() {
    let app = app();
    let most = 8 * 1024 * 1024;
    let padded = |size: usize| "{}".to_owned() + &" ".repeat(size - 2);
    assert_eq!(run(&app, "ping", &padded(most)).await.to_text(), "pong");
    let output = run(&app, "ping", &padded(most + 1)).await;
    let want = "invalid arguments for `ping`: 8388609 bytes of arguments, at most 8388608 are read. Expected: {}. Call it \
                again with arguments that fit.";
    assert_eq!(failed(&output), (code::INVALID_ARGUMENTS, want.to_owned()));
    app.close().await.unwrap();
}
