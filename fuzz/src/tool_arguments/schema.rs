//! Whether arguments fit a tool's schema, as far as the schemas of the file tools go.

use serde_json::Value;

/// How arguments fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fit {
    /// They do, by the schema's every word.
    Valid,
    /// They do not, and no tool may run on them.
    Invalid,
    /// A model that writes this means something that a tool may take: nothing at all, `null` for what may be left out, a
    /// number out of its range, a word that is not one of the choices, a key twice.
    Lenient,
}

pub(crate) fn fit(schema: &Value, arguments: &str) -> Fit {
    if arguments.trim().is_empty() {
        return Fit::Lenient;
    }
    let Ok(value) = serde_json::from_str::<Value>(arguments) else { return Fit::Invalid };
    let Some(object) = value.as_object() else { return Fit::Invalid };
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect::<Vec<_>>();
    if required.iter().any(|name| !object.contains_key(*name)) {
        return Fit::Invalid;
    }
    let mut fit = Fit::Valid;
    for (name, value) in object {
        match property(&schema["properties"][name], value) {
            Fit::Valid => {}
            Fit::Lenient if !required.contains(&name.as_str()) => fit = Fit::Lenient,
            Fit::Invalid | Fit::Lenient => return Fit::Invalid,
        }
    }
    // A key that stands there twice, in whatever spelling, is one here.
    if object.keys().any(|name| arguments.matches(name.as_str()).count() > 1) || arguments.contains('\\') {
        fit = Fit::Lenient;
    }
    fit
}

fn property(property: &Value, value: &Value) -> Fit {
    let right = match property["type"].as_str() {
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("integer") => value.is_u64(),
        Some(other) => panic!("a schema of a file tool has a property of type {other}"),
        // A key that there is not.
        None if property.is_null() => return Fit::Invalid,
        None => panic!("a property of a file tool has no type: {property}"),
    };
    match right {
        true if value.is_u64() && !in_range(property, value) => Fit::Lenient,
        true if property["enum"].as_array().is_some_and(|words| !words.contains(value)) => Fit::Lenient,
        true => Fit::Valid,
        false if value.is_null() => Fit::Lenient,
        false => Fit::Invalid,
    }
}

fn in_range(property: &Value, value: &Value) -> bool {
    let value = value.as_u64();
    property["minimum"].as_u64() <= value && (property["maximum"].is_null() || value <= property["maximum"].as_u64())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn arguments_fit_or_do_not() {
        let schema = json!({
            "properties": {
                "path": {"type": "string"},
                "limit": {"type": "integer", "minimum": 1, "maximum": 9},
                "output": {"type": "string", "enum": ["files", "count"]},
                "all": {"type": "boolean"},
            },
            "required": ["path"],
        });
        for (arguments, want) in [
            (r#"{"path": "a"}"#, Fit::Valid),
            (r#"{"path": "a", "limit": 9, "output": "files", "all": true}"#, Fit::Valid),
            (r#"{"path": "a", "limit": 10}"#, Fit::Lenient),
            (r#"{"path": "a", "limit": 0}"#, Fit::Lenient),
            (r#"{"path": "a", "output": "other"}"#, Fit::Lenient),
            (r#"{"path": "a", "all": null}"#, Fit::Lenient),
            (r#"{"path": "a", "path": 1}"#, Fit::Invalid),
            (r#"{"path": 1, "path": "a"}"#, Fit::Lenient),
            (" ", Fit::Lenient),
            (r#"["a"]"#, Fit::Invalid),
            ("{}", Fit::Invalid),
            ("1", Fit::Invalid),
            (r#"{"path": null}"#, Fit::Invalid),
            (r#"{"path": "a", "limit": 1.0}"#, Fit::Invalid),
            (r#"{"path": "a", "limit": "1"}"#, Fit::Invalid),
            (r#"{"path": "a", "other": 1}"#, Fit::Invalid),
            (r#"{"path": "a""#, Fit::Invalid),
        ] {
            assert_eq!(fit(&schema, arguments), want, "{arguments}");
        }
    }
}
