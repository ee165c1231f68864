use std::fmt;
use std::sync::Arc;

use jsonschema::Validator;
use sandbox::one_line;
use serde_json::{Map, Value};

/// The longest schema, in bytes.
const SIZE_LIMIT: usize = 64 * 1024;

/// The deepest schema.
const DEPTH_LIMIT: usize = 24;

/// The most mistakes of a result that are told at once.
const MISTAKES_TOLD: usize = 5;

/// The keywords that are understood. What is not among them would be shown to the model and not be enforced, or would
/// lead out of the schema.
const KEYWORDS: [&str; 22] = [
    "type",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
    "enum",
    "const",
    "anyOf",
    "oneOf",
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "title",
    "description",
];

/// What a child's result must look like: JSON Schema 2020-12, of which it takes an object at the root and `type`,
/// `properties`, `required`, `additionalProperties`, `items`, `minItems`, `maxItems`, `uniqueItems`, `minProperties`,
/// `maxProperties`, `enum`, `const`, `anyOf`, `oneOf`, `minLength`, `maxLength`, `minimum`, `maximum`,
/// `exclusiveMinimum`, `exclusiveMaximum`, `title` and `description`. Anything else is refused, not ignored: references
/// lead elsewhere, patterns may take forever, and formats are not checked by everyone.
///
/// ```
/// use serde_json::json;
/// use subagent::OutputSchema;
/// let count = json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] });
/// assert!(OutputSchema::new(count).is_ok());
/// let wrong = OutputSchema::new(json!({ "type": "object", "properties": { "n": { "type": "int" } } })).unwrap_err();
/// assert!(wrong.to_string().contains("/properties/n"), "{wrong}");
/// ```
#[derive(Clone)]
pub struct OutputSchema(Arc<Inner>);

struct Inner {
    schema: Arc<Value>,
    validator: Validator,
}

/// A schema cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid output schema{}: {message}", place(.pointer))]
pub struct SchemaError {
    /// JSON pointer to where it is wrong; empty for the root.
    pub pointer: String,
    /// What is wrong there.
    pub message: String,
}

impl OutputSchema {
    /// Checks a schema and prepares it.
    pub fn new(schema: Value) -> Result<Self, SchemaError> {
        let size = schema.to_string().len();
        if size > SIZE_LIMIT {
            return Err(wrong("", format!("it has {size} bytes, at most {SIZE_LIMIT} are taken")));
        }
        if schema.get("type").and_then(Value::as_str) != Some("object") {
            return Err(wrong("", "its `type` must be \"object\", since tools take objects"));
        }
        check(&schema, &mut String::new(), 0)?;
        let built = jsonschema::draft202012::options().build(&schema);
        let validator = built.map_err(|error| wrong(&error.instance_path().to_string(), error.to_string()))?;
        Ok(Self(Arc::new(Inner { schema: Arc::new(schema), validator })))
    }

    /// The schema.
    pub fn as_value(&self) -> &Arc<Value> {
        &self.0.schema
    }

    /// What does not fit, for whoever wrote the value; empty if it all does.
    pub fn mistakes(&self, value: &Value) -> Vec<String> {
        let told = self.0.validator.iter_errors(value).take(MISTAKES_TOLD).map(|error| {
            let at = error.instance_path().to_string();
            let what: String = error.to_string().chars().take(300).collect();
            format!("{}: {}", if at.is_empty() { "the result" } else { &at }, one_line(&what))
        });
        told.collect()
    }
}

impl fmt::Debug for OutputSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OutputSchema({})", self.0.schema)
    }
}

impl PartialEq for OutputSchema {
    fn eq(&self, other: &Self) -> bool {
        self.0.schema == other.0.schema
    }
}

fn check(schema: &Value, at: &mut String, depth: usize) -> Result<(), SchemaError> {
    if depth > DEPTH_LIMIT {
        return Err(wrong(at, format!("it is more than {DEPTH_LIMIT} schemas deep")));
    }
    let fields = match schema {
        Value::Object(fields) => fields,
        Value::Bool(_) => return Ok(()),
        _ => return Err(wrong(at, "a schema is an object or a boolean")),
    };
    for (keyword, value) in fields {
        if !KEYWORDS.contains(&&**keyword) {
            let shown: String = keyword.chars().take(64).collect();
            let known = KEYWORDS.join(", ");
            return Err(wrong(at, format!("`{}` is not supported; there are: {known}", one_line(&shown))));
        }
        match (&**keyword, value) {
            ("properties", Value::Object(properties)) => below(properties, at, keyword, depth)?,
            ("items" | "additionalProperties", value) => within(at, keyword, |at| check(value, at, depth + 1))?,
            ("anyOf" | "oneOf", Value::Array(choices)) => {
                for (index, choice) in choices.iter().enumerate() {
                    within(at, &format!("{keyword}/{index}"), |at| check(choice, at, depth + 1))?;
                }
            }
            // Whether the rest fits is for the validator to say.
            _ => {}
        }
    }
    Ok(())
}

fn below(schemas: &Map<String, Value>, at: &mut String, keyword: &str, depth: usize) -> Result<(), SchemaError> {
    schemas.iter().try_for_each(|(name, schema)| {
        let name = name.replace('~', "~0").replace('/', "~1");
        within(at, &format!("{keyword}/{name}"), |at| check(schema, at, depth + 1))
    })
}

fn within<T>(at: &mut String, step: &str, look: impl FnOnce(&mut String) -> T) -> T {
    let length = at.len();
    at.push('/');
    at.push_str(step);
    let found = look(at);
    at.truncate(length);
    found
}

fn wrong(pointer: &str, message: impl Into<String>) -> SchemaError {
    SchemaError { pointer: one_line(pointer).to_string(), message: one_line(&message.into()).to_string() }
}

fn place(pointer: &str) -> String {
    if pointer.is_empty() { String::new() } else { format!(" at {pointer}") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn refused(schema: Value, told: &str) {
        let wrong = OutputSchema::new(schema).expect_err("it cannot be used").to_string();
        assert!(wrong.starts_with(told) && !wrong.contains('\n'), "{wrong}");
    }

    // D-30
    #[test]
    fn what_would_not_be_enforced_is_refused() {
        refused(json!(true), "invalid output schema: its `type` must be \"object\"");
        refused(json!({ "type": "array" }), "invalid output schema: its `type` must be \"object\"");
        refused(json!({ "type": "object", "$ref": "http://127.0.0.1/x" }), "invalid output schema: `$ref` is not");
        let pattern = json!({ "type": "object", "properties": { "a/b": { "items": { "pattern": "(a+)+$" } } } });
        refused(
            pattern,
            "invalid output schema at /properties/a~1b/items: `pattern` is not supported; there are: type",
        );
        let choice = json!({ "type": "object", "additionalProperties": { "anyOf": [true, { "if": true }] } });
        refused(choice, "invalid output schema at /additionalProperties/anyOf/1: `if` is not supported");
        refused(json!({ "type": "object", "properties": [] }), "invalid output schema");
        refused(
            json!({ "type": "object", "properties": { "n": { "type": "int" } } }),
            "invalid output schema at /prop",
        );
        refused(json!({ "type": "object", "required": "n" }), "invalid output schema at /required");
        refused(json!({ "type": "object", "description": "x".repeat(SIZE_LIMIT) }), "invalid output schema: it has");
        let deep = (0..DEPTH_LIMIT + 1).fold(json!({}), |inner, _| json!({ "items": inner }));
        refused(
            json!({ "type": "object", "properties": { "deep": deep } }),
            "invalid output schema at /properties/deep",
        );
    }

    // D-30
    #[test]
    fn mistakes_say_where_they_are() {
        let schema = json!({
            "type": "object",
            "properties": { "n": { "type": "integer", "maximum": 9 }, "tags": { "items": { "enum": ["a", "b"] } } },
            "required": ["n"],
            "additionalProperties": false,
        });
        let schema = OutputSchema::new(schema).unwrap();
        assert!(schema.mistakes(&json!({ "n": 3, "tags": ["a"] })).is_empty());
        let mistakes = schema.mistakes(&json!({ "n": 10, "tags": ["a", "c"], "x": 1 }));
        for told in ["/n: ", "/tags/1: ", "the result: "] {
            assert!(mistakes.iter().any(|mistake| mistake.starts_with(told)), "{told}: {mistakes:?}");
        }
        assert!(!schema.mistakes(&json!({})).is_empty());
    }
}
