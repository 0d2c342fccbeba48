//! Label and field selectors of lists and watches.

use std::sync::Arc;

use crate::field_error::FieldError;
use crate::kinds;
use crate::refusal::Refusal;
use crate::store::Object;

/// Which objects of a collection are meant.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selection {
    /// Only this namespace.
    pub(crate) namespace: Option<Arc<str>>,
    pub(crate) labels: Vec<LabelTest>,
    pub(crate) fields: Vec<FieldTest>,
}

impl Selection {
    pub(crate) fn matches(&self, object: &Object) -> bool {
        self.namespace.as_ref().is_none_or(|namespace| *namespace == object.key.namespace)
            && self.labels.iter().all(|test| test.matches(object.label(&test.key)))
            && self.fields.iter().all(|test| {
                let value = object.field(&test.path).unwrap_or_default();
                (value == test.value) == test.equal
            })
    }

    /// Whether anything but the namespace is asked for.
    pub(crate) fn is_selective(&self) -> bool {
        !self.labels.is_empty() || !self.fields.is_empty()
    }
}

/// One requirement of a field selector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FieldTest {
    pub(crate) path: String,
    pub(crate) value: String,
    pub(crate) equal: bool,
}

/// One requirement of a label selector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LabelTest {
    key: String,
    operator: Operator,
    values: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    In,
    NotIn,
    Exists,
    DoesNotExist,
    GreaterThan,
    LessThan,
}

impl LabelTest {
    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    pub(crate) fn matches(&self, value: Option<&str>) -> bool {
        let listed = |value: &str| self.values.iter().any(|one| one == value);
        let number = |text: &str| text.parse::<i64>().ok();
        let bound = self.values.first().and_then(|value| number(value));
        match self.operator {
            Operator::In => value.is_some_and(listed),
            Operator::NotIn => !value.is_some_and(listed),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
            Operator::GreaterThan => value.and_then(number) > bound && value.and_then(number).is_some(),
            Operator::LessThan => value.and_then(number).is_some_and(|value| Some(value) < bound),
        }
    }
}

/// Reads a field selector such as `spec.nodeName=a,status.phase!=Failed`.
pub(crate) fn parse_fields(text: &str) -> Result<Vec<FieldTest>, Refusal> {
    let mut tests = Vec::new();
    for term in split_terms(text) {
        if term.is_empty() {
            continue;
        }
        let (path, value, equal) = if let Some((path, value)) = term.split_once("!=") {
            (path, value, false)
        } else if let Some((path, value)) = term.split_once("==") {
            (path, value, true)
        } else if let Some((path, value)) = term.split_once('=') {
            (path, value, true)
        } else {
            return Err(Refusal::bad_request(format!(
                "invalid selector: '{text}'; can't understand '{term}'"
            )));
        };
        tests.push(FieldTest { path: path.to_owned(), value: unescape(value), equal });
    }
    Ok(tests)
}

/// Splits at commas that no backslash protects.
fn split_terms(text: &str) -> Vec<&str> {
    let mut terms = Vec::new();
    let (mut start, mut escaped) = (0, false);
    for (at, character) in text.char_indices() {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ',' => {
                terms.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    terms.push(&text[start..]);
    terms
}

fn unescape(value: &str) -> String {
    let mut result = String::new();
    let mut escaped = false;
    for character in value.chars() {
        if character == '\\' && !escaped {
            escaped = true;
        } else {
            result.push(character);
            escaped = false;
        }
    }
    result
}

/// Reads a label selector such as `app=web,tier in (a, b),!old`.
pub(crate) fn parse_labels(text: &str) -> Result<Vec<LabelTest>, Refusal> {
    let tokens = tokens(text);
    let mut parser = Parser { tokens: &tokens, at: 0 };
    let mut tests = Vec::new();
    let refuse = |why: String| Refusal::bad_request(format!("unable to parse requirement: {why}"));
    while parser.peek().is_some() {
        let requirement = parser.requirement().map_err(refuse)?;
        check_key(&requirement.key).map_err(refuse)?;
        tests.push(requirement);
        match parser.next() {
            None => break,
            Some(Token::Comma) if parser.peek().is_some() => {}
            Some(Token::Comma) => {
                return Err(refuse("found '', expected: identifier after ','".to_owned()));
            }
            Some(other) => {
                let found = other.text();
                return Err(Refusal::bad_request(format!(
                    "found '{found}', expected: ',' or 'end of string'"
                )));
            }
        }
    }
    Ok(tests)
}

fn check_key(key: &str) -> Result<(), String> {
    match kinds::label_key_mistakes(key).as_slice() {
        [] => Ok(()),
        mistakes => Err(FieldError::invalid("<nil>", &key.into(), mistakes.join("; ")).to_string()),
    }
}

/// Equal labels, as `matchLabels` of a selector object asks for them.
pub(crate) fn equal_label(key: &str, value: &str) -> LabelTest {
    LabelTest { key: key.to_owned(), operator: Operator::In, values: vec![value.to_owned()] }
}

/// Reads a LabelSelector object; nothing when it cannot be understood.
pub(crate) fn from_label_selector(selector: &serde_json::Value) -> Option<Vec<LabelTest>> {
    let mut tests = Vec::new();
    for (key, value) in selector["matchLabels"].as_object().into_iter().flatten() {
        tests.push(equal_label(key, value.as_str()?));
    }
    for expression in selector["matchExpressions"].as_array().into_iter().flatten() {
        let operator = match expression["operator"].as_str()? {
            "In" => Operator::In,
            "NotIn" => Operator::NotIn,
            "Exists" => Operator::Exists,
            "DoesNotExist" => Operator::DoesNotExist,
            _ => return None,
        };
        let values = expression["values"].as_array().into_iter().flatten();
        tests.push(LabelTest {
            key: expression["key"].as_str()?.to_owned(),
            operator,
            values: values.filter_map(|value| value.as_str().map(str::to_owned)).collect(),
        });
    }
    Some(tests)
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Word(String),
    Comma,
    Open,
    Close,
    Not,
    Equal,
    NotEqual,
    Greater,
    Less,
}

impl Token {
    fn text(&self) -> &str {
        match self {
            Self::Word(word) => word,
            Self::Comma => ",",
            Self::Open => "(",
            Self::Close => ")",
            Self::Not => "!",
            Self::Equal => "=",
            Self::NotEqual => "!=",
            Self::Greater => ">",
            Self::Less => "<",
        }
    }
}

fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut characters = text.chars().peekable();
    let mut word = String::new();
    while let Some(character) = characters.next() {
        let mut follows = |wanted: char| characters.next_if_eq(&wanted).is_some();
        let token = match character {
            ',' => Some(Token::Comma),
            '(' => Some(Token::Open),
            ')' => Some(Token::Close),
            '!' => Some(if follows('=') { Token::NotEqual } else { Token::Not }),
            '=' => {
                follows('=');
                Some(Token::Equal)
            }
            '>' => Some(Token::Greater),
            '<' => Some(Token::Less),
            _ => None,
        };
        if token.is_none() && !character.is_whitespace() {
            word.push(character);
            continue;
        }
        if !word.is_empty() {
            tokens.push(Token::Word(std::mem::take(&mut word)));
        }
        tokens.extend(token);
    }
    if !word.is_empty() {
        tokens.push(Token::Word(word));
    }
    tokens
}

struct Parser<'a> {
    tokens: &'a [Token],
    at: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn next(&mut self) -> Option<Token> {
        let token = self.peek().cloned();
        self.at += usize::from(token.is_some());
        token
    }

    fn requirement(&mut self) -> Result<LabelTest, String> {
        let absent = self.peek() == Some(&Token::Not);
        if absent {
            self.next();
        }
        let key = match self.next() {
            Some(Token::Word(word)) => word,
            other => {
                let found = other.map(|token| token.text().to_owned()).unwrap_or_default();
                return Err(format!("found '{found}', expected: identifier"));
            }
        };
        let test = |operator, values| LabelTest { key: key.clone(), operator, values };
        if absent {
            return Ok(test(Operator::DoesNotExist, Vec::new()));
        }
        let operator = match self.peek() {
            None | Some(Token::Comma) => return Ok(test(Operator::Exists, Vec::new())),
            Some(Token::Equal) => Operator::In,
            Some(Token::NotEqual) => Operator::NotIn,
            Some(Token::Greater) => Operator::GreaterThan,
            Some(Token::Less) => Operator::LessThan,
            Some(Token::Word(word)) if word == "in" => {
                self.next();
                return Ok(test(Operator::In, self.values()?));
            }
            Some(Token::Word(word)) if word == "notin" => {
                self.next();
                return Ok(test(Operator::NotIn, self.values()?));
            }
            Some(other) => {
                return Err(format!("found '{}', expected: in, notin, =, ==, !=, gt, lt", other.text()));
            }
        };
        self.next();
        let value = match self.peek() {
            Some(Token::Word(word)) => word.clone(),
            _ => return Ok(test(operator, vec![String::new()])),
        };
        self.next();
        Ok(test(operator, vec![value]))
    }

    fn values(&mut self) -> Result<Vec<String>, String> {
        let found = |token: Option<Token>| token.map(|token| token.text().to_owned()).unwrap_or_default();
        match self.next() {
            Some(Token::Open) => {}
            other => return Err(format!("found '{}' expected: '('", found(other))),
        }
        let mut values = Vec::new();
        loop {
            match self.next() {
                Some(Token::Word(word)) => values.push(word),
                Some(Token::Comma) => {}
                Some(Token::Close) => return Ok(values),
                other => return Err(format!("found '{}', expected: ',' or ')'", found(other))),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selects(selector: &str, labels: &[(&str, &str)]) -> bool {
        let tests = parse_labels(selector).unwrap();
        tests.iter().all(|test| {
            test.matches(labels.iter().find(|(key, _)| *key == test.key).map(|(_, value)| *value))
        })
    }

    #[test]
    fn every_operator_of_a_label_selector_is_understood() {
        let labels = [("app", "web"), ("tier", "b"), ("count", "5")];
        for yes in [
            "",
            "app",
            "app=web",
            "app==web",
            "app!=db",
            "!old",
            "tier in (a, b)",
            "tier notin (a,c)",
            "count>4",
            "count<6",
            "app=web,tier in (b),!old",
            "missing!=x",
            "missing notin (a)",
        ] {
            assert!(selects(yes, &labels), "{yes}");
        }
        for no in
            ["old", "app=db", "app!=web", "!app", "tier in (a)", "tier notin (a,b)", "count>5", "x>1", "x<1"]
        {
            assert!(!selects(no, &labels), "{no}");
        }
    }

    #[test]
    fn a_malformed_label_selector_is_a_bad_request() {
        for text in ["app=web,", "app in", "app in (a", "=x", "app web"] {
            assert_eq!(parse_labels(text).unwrap_err().code.as_u16(), 400, "{text}");
        }
    }

    #[test]
    fn a_field_selector_protects_commas_with_a_backslash() {
        let tests = parse_fields(r"metadata.name=a\,b,status.phase!=Failed").unwrap();
        assert_eq!(tests[0].value, "a,b");
        assert!(!tests[1].equal);
        assert!(parse_fields("nonsense").is_err());
    }
}
