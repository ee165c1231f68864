use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use context::{Ctx, RegisterError};
use llm::ToolSchema;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;

use crate::{Call, ToolOutput, code};

/// The longest arguments that are looked at, in bytes.
const ARGUMENTS_LIMIT: usize = 8 * 1024 * 1024;

/// How long a call may take to notice that its turn was cancelled, unless its tool says otherwise.
const CANCEL_GRACE: Duration = Duration::from_secs(2);

/// Something that a model may call. Write a [`TypedTool`] unless the schema is only known at run time.
///
/// Registered with `ctx.register::<dyn Tool>(name, tool)`, under the name in its schema: in the app's scope for every
/// agent, in an agent's scope for that agent alone.
#[async_trait]
pub trait Tool: Send + Sync {
    /// What the model sees of it.
    fn schema(&self) -> &ToolSchema;

    /// Whether it may run beside other calls of the same response.
    fn concurrency(&self) -> Concurrency {
        Concurrency::Alone
    }

    /// How long it may take to notice that its turn was cancelled; then it is dropped.
    fn cancel_grace(&self) -> Duration {
        CANCEL_GRACE
    }

    /// Runs it. Everything that goes wrong is an answer for the model. Being dropped must leave nothing half done that
    /// matters; a tool that takes long watches [`Call::cancelled`].
    async fn call(&self, call: &Call) -> ToolOutput;
}

/// Whether calls of one response may overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Concurrency {
    /// Runs after everything asked before it, and before everything asked after it.
    Alone,
    /// May run beside its neighbours that say the same.
    Shared,
}

/// A tool whose arguments are a type.
#[async_trait]
pub trait TypedTool: Send + Sync + 'static {
    /// The arguments. Derive `Deserialize` with `deny_unknown_fields`, and `JsonSchema`; doc comments reach the model.
    type Args: DeserializeOwned + JsonSchema + Send;

    /// What the model calls it.
    fn name(&self) -> &str;

    /// What it does and when to use it.
    fn description(&self) -> Cow<'_, str>;

    /// Whether it may run beside other calls of the same response.
    fn concurrency(&self) -> Concurrency {
        Concurrency::Alone
    }

    /// How long it may take to notice that its turn was cancelled; then it is dropped.
    fn cancel_grace(&self) -> Duration {
        CANCEL_GRACE
    }

    /// Runs it with valid arguments.
    async fn run(&self, args: Self::Args, call: &Call) -> ToolOutput;
}

/// Registers a typed tool in a scope.
pub fn register(ctx: &Ctx, tool: impl TypedTool) -> Result<(), RegisterError> {
    let tool = typed(tool);
    ctx.register::<dyn Tool>(tool.schema().name.clone(), tool)
}

/// A typed tool as a tool, its schema derived.
pub fn typed<T: TypedTool>(tool: T) -> Arc<dyn Tool> {
    let schema = ToolSchema {
        name: tool.name().into(),
        description: tool.description().into(),
        input_schema: Arc::new(schema_of::<T::Args>()),
    };
    Arc::new(Typed { tool, schema })
}

fn schema_of<A: JsonSchema>() -> serde_json::Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<A>();
    schema.remove("title");
    let mut schema = schema.to_value();
    // Another crate in the program may have made maps keep the order of insertion. A model sees the same either way.
    schema.sort_all_objects();
    schema
}

struct Typed<T> {
    tool: T,
    schema: ToolSchema,
}

#[async_trait]
impl<T: TypedTool> Tool for Typed<T> {
    fn schema(&self) -> &ToolSchema {
        &self.schema
    }

    fn concurrency(&self) -> Concurrency {
        self.tool.concurrency()
    }

    fn cancel_grace(&self) -> Duration {
        self.tool.cancel_grace()
    }

    async fn call(&self, call: &Call) -> ToolOutput {
        match parse(&call.arguments) {
            Ok(args) => self.tool.run(args, call).await,
            Err(why) => {
                let text = format!(
                    "invalid arguments for `{}`: {why}. Expected: {}. Call it again with arguments that fit.",
                    self.schema.name,
                    expected(&self.schema.input_schema),
                );
                ToolOutput::error(code::INVALID_ARGUMENTS, text)
            }
        }
    }
}

fn parse<A: DeserializeOwned>(arguments: &str) -> Result<A, String> {
    if arguments.len() > ARGUMENTS_LIMIT {
        return Err(format!("{} bytes of arguments, at most {ARGUMENTS_LIMIT} are read", arguments.len()));
    }
    // Some models write nothing at all where they mean no arguments.
    let arguments = if arguments.trim().is_empty() { "{}" } else { arguments };
    // Serde takes the fields of a struct from an array too, by their order.
    if arguments.trim_start().starts_with('[') {
        return Err("they are an array, not an object".to_owned());
    }
    serde_json::from_str(arguments).map_err(|error| error.to_string())
}

/// A schema in one line, for an error: `{"path": string, "all"?: boolean}`.
fn expected(schema: &serde_json::Value) -> String {
    let required = |name: &str| {
        let required = schema["required"].as_array();
        required.is_some_and(|names| names.iter().any(|required| required.as_str() == Some(name)))
    };
    let field = |(name, property): (&String, &serde_json::Value)| {
        let kind = match &property["type"] {
            serde_json::Value::String(kind) => kind.clone(),
            serde_json::Value::Array(kinds) => kinds
                .iter()
                .filter_map(|kind| kind.as_str())
                .filter(|kind| *kind != "null")
                .collect::<Vec<_>>()
                .join("|"),
            _ => "any".to_owned(),
        };
        format!("\"{name}\"{}: {kind}", if required(name) { "" } else { "?" })
    };
    let fields = schema["properties"].as_object().into_iter().flatten().map(field).collect::<Vec<_>>();
    format!("{{{}}}", fields.join(", "))
}
