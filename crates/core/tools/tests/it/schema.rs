//! What a model is told of a tool's arguments.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::Deserialize;
use tools::*;

/// Told beside the tool's own description.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[expect(dead_code, reason = "only its schema is of interest")]
struct Args {
    /// Absolute, or relative to the working directory.
    path: String,
    /// How many lines at most.
    line_limit: Option<u32>,
    #[serde(default)]
    how: How,
    /// In order.
    edits: Vec<Edit>,
}

/// In which way.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum How {
    #[default]
    AsIs,
    LineByLine,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only its schema is of interest")]
struct Edit {
    /// What is there.
    old: String,
    all: bool,
}

struct Example;

#[async_trait::async_trait]
impl TypedTool for Example {
    type Args = Args;

    fn name(&self) -> &str {
        "example"
    }

    fn description(&self) -> Cow<'_, str> {
        "Shows what a schema looks like.".into()
    }

    fn concurrency(&self) -> Concurrency {
        Concurrency::Shared
    }

    async fn run(&self, _: Args, _: &Call) -> ToolOutput {
        ToolOutput::text("")
    }
}

#[test]
fn a_schema_is_derived_whole_and_nothing_points_elsewhere() {
    let tool = typed(Example);
    assert_eq!(tool.concurrency(), Concurrency::Shared, "a typed tool's own word counts");
    let schema = serde_json::to_string_pretty(tool.schema()).unwrap();
    insta::assert_snapshot!(schema, @r#"
    {
      "name": "example",
      "description": "Shows what a schema looks like.",
      "inputSchema": {
        "additionalProperties": false,
        "description": "Told beside the tool's own description.",
        "properties": {
          "edits": {
            "description": "In order.",
            "items": {
              "additionalProperties": false,
              "properties": {
                "all": {
                  "type": "boolean"
                },
                "old": {
                  "description": "What is there.",
                  "type": "string"
                }
              },
              "required": [
                "old",
                "all"
              ],
              "type": "object"
            },
            "type": "array"
          },
          "how": {
            "description": "In which way.",
            "enum": [
              "as-is",
              "line-by-line"
            ],
            "type": "string"
          },
          "lineLimit": {
            "description": "How many lines at most.",
            "format": "uint32",
            "minimum": 0,
            "type": [
              "integer",
              "null"
            ]
          },
          "path": {
            "description": "Absolute, or relative to the working directory.",
            "type": "string"
          }
        },
        "required": [
          "path",
          "edits"
        ],
        "type": "object"
      }
    }
    "#);
}

#[test]
fn a_tool_that_does_not_say_so_runs_alone() {
    struct Silent;
    #[async_trait::async_trait]
    impl TypedTool for Silent {
        type Args = Args;
        fn name(&self) -> &str {
            "silent"
        }
        fn description(&self) -> Cow<'_, str> {
            "".into()
        }
        async fn run(&self, _: Args, _: &Call) -> ToolOutput {
            ToolOutput::text("")
        }
    }
    assert_eq!(typed(Silent).concurrency(), Concurrency::Alone);
}
