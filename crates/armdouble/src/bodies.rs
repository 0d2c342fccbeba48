//! Whether a body has the shape that a service reads: unknown members and wrong types are refused, as in Azure.
//!
//! Shapes are in `data/shapes.json`: an object lists its members, `!` marks required ones, `*` stands for any name;
//! `readonly` is accepted and ignored; `a|b` is one of these words, `$Name` another shape.

use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use crate::answer::Refusal;
use crate::route::Kind;

static SHAPES: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(include_str!("../data/shapes.json")).unwrap_or_default());

/// What is wrong with a body.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Fault {
    Unknown { member: String, of: String, path: String },
    Type { path: String, expected: &'static str, found: String },
    Missing { member: String, path: String },
    Word { path: String, found: String },
}

/// Refuses a body that does not have a shape, in the words of the service that reads this kind.
pub(crate) fn check(kind: Kind, shape: &str, body: &Value) -> Result<(), Refusal> {
    let Err(fault) = matches(&SHAPES[shape], body, "", shape) else { return Ok(()) };
    if let Fault::Missing { member, path } = &fault
        && member == "location"
        && path == "location"
    {
        return Err(Refusal::new(
            400,
            "LocationRequired",
            "The location property is required for this definition.",
        ));
    }
    Err(match kind {
        Kind::NetworkInterface => network(&fault),
        Kind::Machine | Kind::DeleteMachines => kubernetes(&fault),
        _ => compute(&fault),
    })
}

fn matches(shape: &Value, value: &Value, path: &str, of: &str) -> Result<(), Fault> {
    let wrong = |expected: &'static str| {
        Err(Fault::Type {
            path: path.to_owned(),
            expected,
            found: value.to_string().chars().take(60).collect(),
        })
    };
    // Null is the same as nothing.
    if value.is_null() {
        return Ok(());
    }
    match shape {
        Value::Object(members) => match value.as_object() {
            Some(object) => of_object(members, object, path, of),
            None => wrong("Object"),
        },
        Value::Array(element) => match (value.as_array(), element.first()) {
            (Some(all), Some(element)) => all
                .iter()
                .enumerate()
                .try_for_each(|(number, each)| matches(element, each, &format!("{path}[{number}]"), of)),
            _ => wrong("Array"),
        },
        Value::String(word) => match word.as_str() {
            "string" if !value.is_string() => wrong("String"),
            "int" if !value.is_i64() && !value.is_u64() => wrong("Int32"),
            "number" if !value.is_number() => wrong("Double"),
            "bool" if !value.is_boolean() => wrong("Boolean"),
            "any" | "readonly" | "string" | "int" | "number" | "bool" => Ok(()),
            reference if reference.starts_with('$') => {
                matches(&SHAPES[&reference[1..]], value, path, &reference[1..])
            }
            words => match value.as_str() {
                None => wrong("String"),
                Some(found) if words.split('|').any(|each| each.eq_ignore_ascii_case(found)) => Ok(()),
                Some(found) => Err(Fault::Word { path: path.to_owned(), found: found.to_owned() }),
            },
        },
        _ => Ok(()),
    }
}

fn of_object(
    members: &Map<String, Value>,
    object: &Map<String, Value>,
    path: &str,
    of: &str,
) -> Result<(), Fault> {
    let inside = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    let required = members.keys().filter_map(|name| name.strip_suffix('!'));
    for name in required {
        if object.get(name).is_none_or(Value::is_null) {
            return Err(Fault::Missing { member: name.to_owned(), path: inside(name) });
        }
    }
    for (name, value) in object {
        let shape =
            members.get(name).or_else(|| members.get(&format!("{name}!"))).or_else(|| members.get("*"));
        let Some(shape) = shape else {
            return Err(Fault::Unknown { member: name.clone(), of: of.to_owned(), path: inside(name) });
        };
        matches(shape, value, &inside(name), name)?;
    }
    Ok(())
}

fn sentence(fault: &Fault) -> String {
    match fault {
        Fault::Unknown { member, of, path } => {
            format!(
                "Could not find member '{member}' on object of type '{of}'. Path '{path}', line 1, position 1."
            )
        }
        Fault::Type { path, expected, found } => {
            format!(
                "Error converting value {found} to type 'System.{expected}'. Path '{path}', line 1, position 1."
            )
        }
        Fault::Missing { member, .. } => format!("Required parameter '{member}' is missing (null)."),
        Fault::Word { path, found } => {
            let name = path.rsplit('.').next().unwrap_or_default();
            format!("The value '{found}' provided for parameter '{name}' is not valid. Path '{path}'.")
        }
    }
}

fn path_of(fault: &Fault) -> &str {
    match fault {
        Fault::Unknown { path, .. }
        | Fault::Type { path, .. }
        | Fault::Missing { path, .. }
        | Fault::Word { path, .. } => path,
    }
}

fn compute(fault: &Fault) -> Refusal {
    let message = sentence(fault);
    match fault {
        // What is not below `properties` is read by Azure Resource Manager itself.
        Fault::Unknown { path, .. } | Fault::Type { path, .. } if !path.starts_with("properties") => {
            Refusal::bad_json(&message)
        }
        Fault::Unknown { .. } | Fault::Type { .. } => {
            Refusal::new(400, "BadRequest", message).target(path_of(fault))
        }
        Fault::Missing { .. } | Fault::Word { .. } => {
            Refusal::new(400, "InvalidParameter", message).target(path_of(fault))
        }
    }
}

fn network(fault: &Fault) -> Refusal {
    Refusal::new(400, "InvalidRequestFormat", "Cannot parse the request.")
        .detail(json!({"code": "InvalidJson", "message": sentence(fault)}))
}

fn kubernetes(fault: &Fault) -> Refusal {
    let refusal = match fault {
        Fault::Unknown { member, path, .. } => Refusal::new(
            400,
            "UnmarshalError",
            format!("UnmarshalEntity encountered error: json: unknown field \"{member}\" ({path})."),
        ),
        Fault::Type { path, expected, found } => Refusal::new(
            400,
            "UnmarshalError",
            format!(
                "UnmarshalEntity encountered error: json: cannot unmarshal {found} into field {path} of type {expected}."
            ),
        ),
        Fault::Missing { .. } | Fault::Word { .. } => Refusal::new(400, "InvalidParameter", sentence(fault)),
    };
    refusal.target(path_of(fault)).flat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(kind: Kind, shape: &str, body: &Value) -> (String, String) {
        let refusal = check(kind, shape, body).unwrap_err();
        (refusal.code.clone(), refusal.answer().value().to_string())
    }

    #[test]
    fn every_shape_that_is_referred_to_is_there() {
        fn look(shape: &Value) {
            match shape {
                Value::Object(members) => members.values().for_each(look),
                Value::Array(elements) => elements.iter().for_each(look),
                Value::String(word) => {
                    if let Some(name) = word.strip_prefix('$') {
                        assert!(SHAPES[name].is_object(), "there is no shape {name}");
                    }
                }
                other => panic!("{other} is no shape"),
            }
        }
        assert!(SHAPES.is_object());
        look(&SHAPES);
    }

    #[test]
    fn a_misspelt_member_is_named_with_its_path() {
        let body = json!({"location": "l", "properties": {"hardwareProfile": {"vmsize": "a"}}});
        let (code, text) = refused(Kind::VirtualMachine, "VirtualMachine", &body);
        assert_eq!(code, "BadRequest");
        assert!(text.contains("'vmsize' on object of type 'hardwareProfile'"), "{text}");
        assert!(text.contains("properties.hardwareProfile.vmsize"), "{text}");
    }

    #[test]
    fn a_wrong_type_is_named_with_its_path() {
        let body = json!({"location": "l", "zones": "1"});
        assert_eq!(refused(Kind::VirtualMachine, "VirtualMachine", &body).0, "InvalidRequestContent");
        let body = json!({"location": "l", "properties": {"ipConfigurations": [{"properties": {"primary": "yes"}}]}});
        let (code, text) = refused(Kind::NetworkInterface, "NetworkInterface", &body);
        assert_eq!(code, "InvalidRequestFormat");
        assert!(text.contains("properties.ipConfigurations[0].properties.primary"), "{text}");
        let body = json!({"properties": {"hardware": {"vmSize": 2}}});
        let (code, text) = refused(Kind::Machine, "Machine", &body);
        assert_eq!(code, "UnmarshalError");
        assert!(text.starts_with("{\"code\""), "AKS writes errors without an envelope: {text}");
    }

    #[test]
    fn what_is_missing_and_words_that_do_not_exist_are_named() {
        assert_eq!(refused(Kind::VirtualMachine, "VirtualMachine", &json!({})).0, "LocationRequired");
        let body = json!({"location": "l", "properties": {"priority": "Cheap"}});
        let (code, text) = refused(Kind::VirtualMachine, "VirtualMachine", &body);
        assert_eq!(code, "InvalidParameter");
        assert!(text.contains("'Cheap'"), "{text}");
    }
}
