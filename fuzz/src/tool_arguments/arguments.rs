//! Arguments that nearly fit a schema, made of bytes: most keys right, most values of their type and worth trying.

use arbitrary::{Result, Unstructured};
use serde_json::{Map, Value, json};

const PATHS: [&str; 24] = [
    "file.txt",
    "sub/deep.txt",
    "new.txt",
    "new/er/file.txt",
    "src/main.rs",
    "long.txt",
    "binary",
    "latin",
    "kept.log",
    ".",
    "..",
    "",
    "../outside/secret.txt",
    "../new.txt",
    "way-out/secret.txt",
    "way-out/new.txt",
    "link-out",
    "way-in/deep.txt",
    "turning",
    "dangling",
    "hard",
    ".git/config",
    ".home/sessions/other.jsonl",
    "way-home/new.txt",
];

const TEXTS: [&str; 16] = [
    "one",
    "two\n",
    "one\ntwo",
    "    one();\n",
    "\r\n",
    "",
    "deep",
    "*.rs",
    "**/*",
    "src/**/main.{rs,txt}",
    "!*",
    "[",
    "(?i)ONE",
    "(a*)*$",
    "^\\s*fn (\\w+)",
    "caf.",
];

const MODES: [&str; 4] = ["workspace-write", "danger-full-access", "read-only", "all"];

const NUMBERS: [u64; 8] = [0, 1, 2, 20, 21, 1000, 1001, u64::MAX];

/// Where the bytes end, the smallest choice is made.
pub(crate) fn nearly_fitting(schema: &Value, bytes: &[u8]) -> String {
    let mut from = Unstructured::new(bytes);
    object(schema, &mut from).unwrap_or_default().to_string()
}

fn object(schema: &Value, from: &mut Unstructured<'_>) -> Result<Value> {
    let empty = Map::new();
    let properties = schema["properties"].as_object().unwrap_or(&empty);
    let required = |name: &String| schema["required"].as_array().is_some_and(|all| all.iter().any(|one| one == name));
    let mut object = Map::new();
    for (name, property) in properties {
        // What is required is left out at times, what is not as often as it is there.
        let there = if required(name) { !from.ratio(1, 16)? } else { from.ratio(1, 2)? };
        if there {
            let value = if from.ratio(1, 12)? { any(from, 0)? } else { fitting(name, property, from)? };
            object.insert(name.clone(), value);
        }
    }
    if from.ratio(1, 16)? {
        object.insert(from.choose(&TEXTS)?.to_string(), any(from, 0)?);
    }
    Ok(Value::Object(object))
}

fn fitting(name: &str, property: &Value, from: &mut Unstructured<'_>) -> Result<Value> {
    Ok(match (name, property["type"].as_str()) {
        (_, Some("boolean")) => from.arbitrary::<bool>()?.into(),
        (_, Some("integer")) => (*from.choose(&NUMBERS)?).into(),
        ("path", _) => path(from)?.into(),
        ("sandbox_permissions", _) => (*from.choose(&MODES)?).into(),
        _ if property["enum"].is_array() => {
            let words = property["enum"].as_array().map_or(&[][..], Vec::as_slice);
            from.choose(words)?.clone()
        }
        _ => text(from)?.into(),
    })
}

fn path(from: &mut Unstructured<'_>) -> Result<String> {
    if from.ratio(1, 8)? {
        return text(from);
    }
    let mut path = (*from.choose(&PATHS)?).to_owned();
    while path.len() < 200 && from.ratio(1, 5)? {
        path = format!("{path}/{}", from.choose(&PATHS)?);
    }
    Ok(path)
}

fn text(from: &mut Unstructured<'_>) -> Result<String> {
    if from.ratio(1, 3)? {
        return from.arbitrary::<&str>().map(str::to_owned);
    }
    Ok((*from.choose(&TEXTS)?).to_owned())
}

fn any(from: &mut Unstructured<'_>, depth: usize) -> Result<Value> {
    Ok(match from.int_in_range(0..=6)? {
        0 => Value::Null,
        1 => from.arbitrary::<bool>()?.into(),
        2 => from.arbitrary::<i64>()?.into(),
        3 => json!(from.arbitrary::<f64>()?),
        4 if depth < 4 => json!([any(from, depth + 1)?]),
        5 if depth < 4 => json!({ text(from)?: any(from, depth + 1)? }),
        _ => text(from)?.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_bytes_make_the_same_arguments_of_the_keys_that_there_are() {
        let schema = json!({"properties": {"path": {"type": "string"}}, "required": ["path"]});
        let bytes: Vec<u8> = (0..200).map(|n: u8| n.wrapping_mul(151).wrapping_add(77)).collect();
        let made = |bytes| nearly_fitting(&schema, bytes);
        assert_eq!(made(&bytes), made(&bytes));
        assert!((0..100).any(|at| made(&bytes[at..]).starts_with(r#"{"path":""#)));
        assert_eq!(nearly_fitting(&Value::Null, &[1; 9]), "{}");
    }
}
