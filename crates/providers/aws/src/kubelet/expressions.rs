//! Expressions in CEL in the kubelet's settings, worked out for each instance type.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use kube_cel::cel::{Context, ExecutionError, FunctionContext, Program, Value};
use units::Quantity;

use super::parse::parse;
use super::{Invalid, Kubelet, MaxPods};

/// What expressions know about an instance type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variables<'a> {
    /// How many virtual processors it has.
    pub vcpus: i64,
    /// How much memory it has, in MiB.
    pub memory_mib: i64,
    /// How many network interfaces the card of the first one can have.
    pub default_enis: i64,
    /// How many IPv4 addresses a network interface can have.
    pub ips_per_eni: i64,
    /// How many pods it takes.
    pub max_pods: i64,
    /// Its name.
    pub instance_type: &'a str,
}

/// A type to try expressions with.
const SAMPLE: Variables<'static> = Variables {
    vcpus: 2,
    memory_mib: 8192,
    default_enis: 3,
    ips_per_eni: 10,
    max_pods: 29,
    instance_type: "m5.large",
};
const NAMES: [&str; 6] = ["vcpus", "memory_mib", "default_enis", "ips_per_eni", "max_pods", "instance_type"];

/// The expressions of an EC2NodeClass.
#[derive(Debug, Default)]
pub struct Expressions {
    pub(super) max_pods: Option<Program>,
    pub(super) kube_reserved: BTreeMap<String, Program>,
    pub(super) system_reserved: BTreeMap<String, Program>,
}

impl Expressions {
    /// Reads the expressions, and says what is wrong with the first that cannot be used.
    pub fn compile(kubelet: &Kubelet) -> Result<Self, Invalid> {
        let max_pods = match &kubelet.max_pods {
            Some(MaxPods::Expression(text)) => Some(compile("maxPods", text)?),
            _ => None,
        };
        let of = |field: &str, written: &BTreeMap<String, String>| {
            let written = written.iter().filter(|(_, text)| !is_amount(text));
            written
                .map(|(name, text)| Ok((name.clone(), compile(&format!("{field}.{name}"), text)?)))
                .collect::<Result<_, Invalid>>()
        };
        Ok(Self {
            max_pods,
            kube_reserved: of("kubeReserved", &kubelet.kube_reserved)?,
            system_reserved: of("systemReserved", &kubelet.system_reserved)?,
        })
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.max_pods.is_none() && self.kube_reserved.is_empty() && self.system_reserved.is_empty()
    }
}

/// The fields that have expressions.
pub fn fields(kubelet: &Kubelet) -> Vec<String> {
    let mut all = Vec::new();
    if matches!(kubelet.max_pods, Some(MaxPods::Expression(_))) {
        all.push("maxPods".to_owned());
    }
    for (field, written) in
        [("kubeReserved", &kubelet.kube_reserved), ("systemReserved", &kubelet.system_reserved)]
    {
        let names = written.iter().filter(|(_, text)| !is_amount(text));
        all.extend(names.map(|(name, _)| format!("{field}.{name}")));
    }
    all
}

/// Whether a text is an amount, and hence no expression.
pub(super) fn is_amount(text: &str) -> bool {
    text.parse::<Quantity>().is_ok()
}

fn compile(field: &str, text: &str) -> Result<Program, Invalid> {
    let invalid = |message: String| Invalid { field: field.to_owned(), message };
    let program = parse(text).map_err(|why| invalid(format!("invalid expression {text:?}: {why}")))?;
    let references = program.references();
    if let Some(name) = references.variables().into_iter().find(|name| !NAMES.contains(name)) {
        let known = NAMES.join(", ");
        return Err(invalid(format!("invalid expression {text:?}: unknown name {name}, expected {known}")));
    }
    // There is no way to know the type of an expression but to work it out for some machine.
    match outcome(&program, &Scope::new(&SAMPLE).0) {
        Ok(_) | Err(Failure::Value(_)) => Ok(program),
        Err(Failure::Kind(message)) => Err(invalid(format!("invalid expression {text:?}: {message}"))),
    }
}

/// Why an expression has no result.
enum Failure {
    /// It is wrong whatever the values.
    Kind(String),
    /// It is wrong for these values.
    Value(String),
}

/// What expressions know and can do.
pub(super) struct Scope(Context<'static>);

impl Scope {
    pub(super) fn new(variables: &Variables<'_>) -> Self {
        let mut context = Context::default();
        context.add_function("max", |ftx: &FunctionContext<'_, '_>| extreme(ftx, f64::max, i64::max));
        context.add_function("min", |ftx: &FunctionContext<'_, '_>| extreme(ftx, f64::min, i64::min));
        let Variables { vcpus, memory_mib, default_enis, ips_per_eni, max_pods, instance_type } = *variables;
        let numbers = [vcpus, memory_mib, default_enis, ips_per_eni, max_pods];
        for (name, number) in NAMES.iter().zip(numbers) {
            context.add_variable_from_value(*name, number);
        }
        context.add_variable_from_value("instance_type", instance_type.to_owned());
        Self(context)
    }

    /// The same for another number of pods.
    pub(super) fn set_max_pods(&mut self, max_pods: i64) {
        self.0.add_variable_from_value("max_pods", max_pods);
    }

    /// The result of an expression as a whole number.
    pub(super) fn evaluate(&self, program: &Program) -> Result<i64, String> {
        outcome(program, &self.0).map_err(|failure| match failure {
            Failure::Kind(message) | Failure::Value(message) => message,
        })
    }
}

fn outcome(program: &Program, context: &Context<'_>) -> Result<i64, Failure> {
    // The library does not expect the one number that has no opposite.
    let result = catch_unwind(AssertUnwindSafe(|| program.execute(context)));
    let Ok(result) = result else {
        return Err(Failure::Value("the numbers are too large".to_owned()));
    };
    match result {
        Ok(Value::Int(number)) => Ok(number),
        Ok(Value::Float(number)) if number.is_finite() => whole(number),
        Ok(Value::Float(number)) => Err(Failure::Value(format!("the result is {number}"))),
        Ok(other) => {
            Err(Failure::Kind(format!("the result must be a number, but is of type {}", other.type_of())))
        }
        Err(error) => Err(failure(&error)),
    }
}

/// A number without what is behind the point.
fn whole(number: f64) -> Result<i64, Failure> {
    // The largest number with a fraction is far below the largest whole one, so this is exact.
    #[expect(clippy::cast_possible_truncation, reason = "checked against the bounds")]
    if number.abs() < 9.2e18 {
        Ok(number.trunc() as i64)
    } else {
        Err(Failure::Value(format!("the result {number} is too large")))
    }
}

fn failure(error: &ExecutionError) -> Failure {
    let text = error.to_string();
    match error {
        ExecutionError::DivisionByZero(_)
        | ExecutionError::RemainderByZero(_)
        | ExecutionError::Overflow(..)
        | ExecutionError::IndexOutOfBounds(_)
        | ExecutionError::NoSuchKey(_)
        | ExecutionError::FunctionError { .. } => Failure::Value(text),
        _ => Failure::Kind(text),
    }
}

/// The larger or smaller of two numbers; with a fraction as soon as one has it.
fn extreme(
    ftx: &FunctionContext<'_, '_>,
    fractions: fn(f64, f64) -> f64,
    whole: fn(i64, i64) -> i64,
) -> Result<Value, ExecutionError> {
    let [left, right] = ftx.args else {
        return Err(ExecutionError::InvalidArgumentCount { expected: 2, actual: ftx.args.len() });
    };
    let (left, right) = (Value::resolve(left, ftx.ptx)?, Value::resolve(right, ftx.ptx)?);
    #[expect(clippy::cast_precision_loss, reason = "the language defines it so")]
    match (left, right) {
        (Value::Int(left), Value::Int(right)) => Ok(Value::Int(whole(left, right))),
        (Value::Float(left), Value::Float(right)) => Ok(Value::Float(fractions(left, right))),
        (Value::Int(left), Value::Float(right)) => Ok(Value::Float(fractions(left as f64, right))),
        (Value::Float(left), Value::Int(right)) => Ok(Value::Float(fractions(left, right as f64))),
        _ => Err(ExecutionError::NoSuchOverload),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compiled(text: &str) -> Result<Program, String> {
        compile("maxPods", text).map_err(|error| error.to_string())
    }

    #[track_caller]
    fn result(text: &str) -> Result<i64, String> {
        Scope::new(&SAMPLE).evaluate(&compiled(text).unwrap())
    }

    #[test]
    fn formulas_give_whole_numbers() {
        for (text, expected) in [
            ("vcpus * 8", 16),
            ("default_enis * (ips_per_eni - 1) + 2", 29),
            ("(default_enis - 1) * (ips_per_eni - 1) * 16 + 2", 290),
            ("min(110, max_pods)", 29),
            ("max(vcpus, 4)", 4),
            ("max(1.5, 1)", 1),
            ("min(2, 1.9)", 1),
            ("max(2.5, 3.7)", 3),
            ("double(vcpus) * 1.5", 3),
            ("-3.9", -3),
            ("vcpus > 4 ? 1 : 0", 0),
            ("instance_type.startsWith('m5') ? 7 : 8", 7),
            ("memory_mib / 1024", 8),
        ] {
            assert_eq!(result(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn large_machines_do_not_overflow() {
        let program = compiled("255 + 11 * max_pods + memory_mib / 100").unwrap();
        let large = Variables {
            vcpus: 448,
            memory_mib: 24 * 1024 * 1024,
            default_enis: 15,
            ips_per_eni: 50,
            max_pods: 737,
            instance_type: "u-24tb1.112xlarge",
        };
        assert_eq!(Scope::new(&large).evaluate(&program), Ok(255 + 11 * 737 + 251_658));
    }

    #[test]
    fn values_that_have_no_result_are_said() {
        for text in ["vcpus / 0", "vcpus % (vcpus - 2)", "1.0 / 0.0", "0.0 / 0.0", "1e300 * 1e300", "1e19"] {
            assert!(result(text).is_err(), "{text}");
        }
    }

    #[test]
    fn nothing_that_is_written_ends_the_process() {
        let around = |before: &str, count: usize, after: &str| {
            format!("{}1{}", before.repeat(count), after.repeat(count))
        };
        let plus = |count: usize| format!("1{}", "+1".repeat(count));
        for text in [
            around("(", 60, ")"),
            around("(", 5000, ")"),
            around("-", 300, ""),
            around("!", 300, ""),
            around("[", 60, "]"),
            around("max(1,", 60, ")"),
            around("true?1:", 60, ""),
            plus(23),
            plus(24),
            plus(200),
            "[".repeat(300),
        ] {
            let _ = compiled(&text).map(|program| Scope::new(&SAMPLE).evaluate(&program));
        }
        assert!(compiled(&plus(23)).is_ok() && compiled(&plus(24)).unwrap_err().contains("levels deep"));
        assert!(compiled("[1].map(x, x)[0]").unwrap_err().contains("loops"));
        for text in [
            "-9223372036854775807 - 2",
            "(0 - 9223372036854775807 - 1) / (0 - 1)",
            "(0 - 9223372036854775807 - 1) % (0 - 1)",
            "-(0 - 9223372036854775807 - 1)",
            "int(1e300)",
            "9223372036854775807 * 2",
            "int('x')",
        ] {
            let result = compiled(text).map(|program| Scope::new(&SAMPLE).evaluate(&program));
            assert!(!matches!(result, Ok(Ok(number)) if number > 0), "{text}: {result:?}");
        }
    }

    #[test]
    fn what_cannot_be_a_number_is_refused() {
        for text in [
            "",
            "  ",
            "true",
            "'text'",
            "vcpus > 1",
            "vcpus +",
            "unknown * 2",
            "vcpus * 1.5",
            "max(1)",
            "max(1, 2, 3)",
            "max('a', 1)",
            "nonsense(1)",
            "[1]",
        ] {
            let error = compiled(text).unwrap_err();
            assert!(error.starts_with("spec.kubelet.maxPods: invalid expression "), "{text}: {error}");
        }
    }
}
