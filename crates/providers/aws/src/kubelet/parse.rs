//! Reads expressions in CEL, and refuses those that would take more than a formula has any need of.
//!
//! The library descends once for each level of an expression, both when it reads and when it evaluates, and
//! would end the process where the stack ends. So it reads on a stack of its own, and what is too deep to be
//! evaluated on any stack is refused.

use kube_cel::cel::Program;
use kube_cel::cel::common::ast::{EntryExpr, Expr, IdedExpr};

/// No formula is longer.
const LONGEST: usize = 1000;
/// No formula is deeper.
const DEEPEST: usize = 24;
/// Enough for the longest expression, were it nothing but brackets.
const STACK_BYTES: usize = 128 << 20;

/// Reads an expression.
pub(super) fn parse(text: &str) -> Result<Program, String> {
    if text.len() > LONGEST {
        return Err(format!("it has {} bytes, expected at most {LONGEST}", text.len()));
    }
    let text = text.to_owned();
    let reader = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(move || read(&text));
    let read = reader.map_err(|error| error.to_string())?.join();
    read.unwrap_or_else(|_| Err("it cannot be read".to_owned()))
}

fn read(text: &str) -> Result<Program, String> {
    let program = Program::compile(text)
        .map_err(|error| error.to_string().split_whitespace().collect::<Vec<_>>().join(" "))?;
    match depth(program.expression()) {
        None => Err("loops over lists are not supported".to_owned()),
        Some(depth) if depth > DEEPEST => {
            Err(format!("it is {depth} levels deep, expected at most {DEEPEST}"))
        }
        Some(_) => Ok(program),
    }
}

/// How many levels an expression has; nothing if it has loops.
fn depth(expression: &IdedExpr) -> Option<usize> {
    let below: Vec<&IdedExpr> = match &expression.expr {
        Expr::Comprehension(_) => return None,
        Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => Vec::new(),
        Expr::Call(call) => call.target.as_deref().into_iter().chain(&call.args).collect(),
        Expr::List(list) => list.elements.iter().collect(),
        Expr::Select(select) => vec![&*select.operand],
        Expr::Map(map) => map.entries.iter().flat_map(|entry| parts(&entry.expr)).collect(),
        Expr::Struct(object) => object.entries.iter().flat_map(|entry| parts(&entry.expr)).collect(),
    };
    below.into_iter().try_fold(0, |deepest, each| Some(deepest.max(depth(each)?))).map(|deepest| deepest + 1)
}

fn parts(entry: &EntryExpr) -> Vec<&IdedExpr> {
    match entry {
        EntryExpr::StructField(field) => vec![&field.value],
        EntryExpr::MapEntry(entry) => vec![&entry.key, &entry.value],
    }
}
