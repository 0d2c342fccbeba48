//! The functions that rules may call.

use kube_cel::KubeCelExt as _;
use kube_cel::cel::extractors::This;
use kube_cel::cel::{Context, ExecutionError, FunctionContext, Value as Cel, functions};

/// All functions of CEL and Kubernetes.
///
/// Those that turn one thing into another are wrapped: if their argument cannot be had, the library says that
/// it is missing, where the API server says why.
pub(super) fn all() -> Context<'static> {
    let mut context = Context::default().with_all();
    context.add_function("int", |ftx: &FunctionContext<'_, '_>| functions::int(ftx, This(argument(ftx)?)));
    context.add_function("uint", |ftx: &FunctionContext<'_, '_>| functions::uint(ftx, This(argument(ftx)?)));
    context
        .add_function("double", |ftx: &FunctionContext<'_, '_>| functions::double(ftx, This(argument(ftx)?)));
    context
        .add_function("string", |ftx: &FunctionContext<'_, '_>| functions::string(ftx, This(argument(ftx)?)));
    context.add_function("size", |ftx: &FunctionContext<'_, '_>| size(argument(ftx)?));
    context
}

/// The value before the dot, or the first in the brackets.
fn argument(ftx: &FunctionContext<'_, '_>) -> Result<Cel, ExecutionError> {
    match (&ftx.this, ftx.args.first()) {
        (Some(this), _) => Ok(this.clone()),
        (None, Some(argument)) => Cel::resolve(argument, ftx.ptx),
        (None, None) => Err(ExecutionError::MissingArgumentOrTarget),
    }
}

/// The length of texts is in characters.
fn size(value: Cel) -> Result<Cel, ExecutionError> {
    let size = match value {
        Cel::List(items) => items.len(),
        Cel::Map(map) => map.map.len(),
        Cel::String(text) => text.chars().count(),
        Cel::Bytes(bytes) => bytes.len(),
        _ => return Err(ExecutionError::NoSuchOverload),
    };
    Ok(Cel::Int(i64::try_from(size).unwrap_or(i64::MAX)))
}
