use std::fmt;
use std::sync::Arc;

use jsonschema::Validator;
use sandbox::one_line;
use serde_json::{Map, Value};

/// The longest schema, in bytes.
const SIZE_LIMIT: usize = 64 * 1024;

/// The deepest schema.
const DEPTH_LIMIT: usize = 24;

/// The most values in a result, itself included.
const NODE_LIMIT: usize = 20_000;

/// The deepest result.
const RESULT_DEPTH_LIMIT: usize = 64;

/// How much a mistake may take to explain. Beneath a choice every mistake of every alternative is worked out, so it is
/// the values of the result times what the schema's choices hold.
const EXPLAINED_LIMIT: usize = 200_000;

/// How much is told of a mistake, in characters each: where it is, and what.
const TOLD_LIMIT: usize = 300;

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
    /// How many values its choices hold.
    choices: usize,
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
        let choices = choices_in(&schema);
        Ok(Self(Arc::new(Inner { schema: Arc::new(schema), validator, choices })))
    }

    /// The schema.
    pub fn as_value(&self) -> &Arc<Value> {
        &self.0.schema
    }

    /// The first thing that does not fit, for whoever wrote the value; `None` if all does. A value that is too large or too
    /// deep is not compared at all.
    pub fn mistake(&self, value: &Value) -> Option<String> {
        let mut nodes = 0;
        if let Err(why) = measure(value, 1, &mut nodes) {
            return Some(why);
        }
        let Inner { validator, choices, .. } = &*self.0;
        if validator.is_valid(value) {
            return None;
        }
        if choices.saturating_mul(nodes) > EXPLAINED_LIMIT {
            return Some("it is not what the schema says; it is too large to say where".to_owned());
        }
        let error = validator.validate(value).err()?;
        let short = |text: String| one_line(&text.chars().take(TOLD_LIMIT).collect::<String>()).to_string();
        let (at, what) = (short(error.instance_path().to_string()), short(error.to_string()));
        Some(format!("{}: {what}", if at.is_empty() { "the result" } else { &at }))
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

/// Counts the values in one, itself included, as far as it may go.
fn measure(value: &Value, depth: usize, nodes: &mut usize) -> Result<(), String> {
    *nodes += 1;
    if *nodes > NODE_LIMIT {
        return Err(format!("it has more than {NODE_LIMIT} values"));
    }
    if depth > RESULT_DEPTH_LIMIT {
        return Err(format!("it is more than {RESULT_DEPTH_LIMIT} values deep"));
    }
    below_of(value).try_for_each(|value| measure(value, depth + 1, nodes))
}

fn choices_in(schema: &Value) -> usize {
    let of = |keyword: &str| schema.get(keyword).map_or(0, values_in);
    of("anyOf") + of("oneOf") + below_of(schema).map(choices_in).sum::<usize>()
}

fn values_in(value: &Value) -> usize {
    1 + below_of(value).map(values_in).sum::<usize>()
}

fn below_of(value: &Value) -> impl Iterator<Item = &Value> {
    let (items, fields) = (value.as_array(), value.as_object());
    items.into_iter().flatten().chain(fields.into_iter().flat_map(Map::values))
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
        assert_eq!(schema.mistake(&json!({ "n": 3, "tags": ["a"] })), None);
        for (value, told) in [
            (json!({ "n": 10, "tags": ["a"] }), "/n: "),
            (json!({ "n": 3, "tags": ["a", "c"] }), "/tags/1: "),
            (json!({ "n": 3, "x": 1 }), "the result: "),
            (json!({}), "the result: "),
        ] {
            let mistake = schema.mistake(&value);
            assert!(mistake.as_ref().is_some_and(|mistake| mistake.starts_with(told)), "{told}: {mistake:?}");
        }
    }

    #[track_caller]
    fn told(schema: &OutputSchema, value: &Value, told: Option<&str>) {
        assert_eq!(schema.mistake(value).as_deref(), told);
    }

    // D-30
    #[test]
    fn a_result_has_its_limits_whatever_the_schema_allows() {
        let any = OutputSchema::new(json!({ "type": "object" })).unwrap();
        let wide = |nodes: usize| json!({ "a": vec![0; nodes - 2] });
        told(&any, &wide(NODE_LIMIT), None);
        told(&any, &wide(NODE_LIMIT + 1), Some("it has more than 20000 values"));
        let deep = |depth: usize| (1..depth).fold(json!({}), |inner, _| json!({ "a": inner }));
        told(&any, &deep(RESULT_DEPTH_LIMIT), None);
        told(&any, &deep(RESULT_DEPTH_LIMIT + 1), Some("it is more than 64 values deep"));
    }

    /// Every item is a mistake under every alternative, and an error for each would fill the memory.
    // D-30
    #[test]
    fn a_mistake_is_told_in_little_room_and_not_at_all_where_it_takes_too_much() {
        let alternatives: Vec<Value> = (1..2_000).map(|n| json!({ "items": { "const": n } })).collect();
        let schema = json!({ "type": "object", "properties": { "a": { "anyOf": alternatives }, "b": false } });
        let schema = OutputSchema::new(schema).unwrap();
        let of = |nodes: usize| json!({ "a": vec![0; nodes - 2] });
        let (many, not_told) = (of(NODE_LIMIT), "it is not what the schema says; it is too large to say where");
        told(&schema, &many, Some(not_told));
        let most = EXPLAINED_LIMIT / schema.0.choices;
        told(&schema, &of(most + 1), Some(not_told));
        let explained = schema.mistake(&of(most)).unwrap();
        assert!(explained.starts_with("/a: [0,0,0") && explained.len() < 2 * TOLD_LIMIT, "{explained}");
        let few = schema.mistake(&json!({ "a": [0, 0] })).unwrap();
        assert!(few.starts_with("/a: [0,0] is not valid under any of"), "{few}");
        let ones = OutputSchema::new(json!({ "type": "object", "properties": { "a": { "items": { "const": 1 } } } }));
        let first = ones.unwrap().mistake(&many).unwrap();
        assert_eq!(first, "/a/0: 1 was expected", "without a choice the first is enough");
    }

    // D-30
    #[test]
    fn a_long_name_makes_no_long_mistake_and_no_second_line() {
        let numbers = json!({ "type": "object", "additionalProperties": { "type": "integer" } });
        let long = format!("a\n{}", "x".repeat(100_000));
        let mistake = OutputSchema::new(numbers).unwrap().mistake(&json!({ long: "no" })).unwrap();
        assert!(
            mistake.starts_with(r"/a\nxxx") && mistake.len() < 2 * TOLD_LIMIT && !mistake.contains('\n'),
            "{mistake}"
        );
    }

    // D-30
    #[test]
    fn a_schema_is_so_deep_and_no_deeper_however_it_is_nested() {
        let nestings: [fn(Value) -> Value; 4] = [
            |within| json!({ "properties": { "a": within } }),
            |within| json!({ "items": within }),
            |within| json!({ "anyOf": [within] }),
            |within| json!({ "oneOf": [within] }),
        ];
        for nest in nestings {
            let of = |depth: usize| {
                let mut schema = (1..depth).fold(json!({}), |within, _| nest(within));
                schema["type"] = "object".into();
                check(&schema, &mut String::new(), 1)
            };
            assert_eq!(of(DEPTH_LIMIT), Ok(()));
            let wrong = of(DEPTH_LIMIT + 1).unwrap_err().to_string();
            assert!(wrong.ends_with("it is more than 24 schemas deep"), "{wrong}");
        }
    }

    #[test]
    fn choices_of_either_kind_count_wherever_they_are() {
        let both =
            json!({ "anyOf": [{}, {}], "oneOf": [{ "type": "object" }], "properties": { "a": { "oneOf": [{}] } } });
        assert_eq!(choices_in(&both), 3 + 3 + 2);
    }

    #[test]
    fn schemas_are_equal_by_what_they_say() {
        let of = |name: &str| OutputSchema::new(json!({ "type": "object", "required": [name] })).unwrap();
        assert!(of("a") == of("a") && of("a") != of("b"));
    }
}
