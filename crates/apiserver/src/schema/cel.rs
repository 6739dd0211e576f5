//! x
use super::{CompiledSchema, Schema};
use crate::field::FieldError;
use serde_json::Value;
#[derive(Debug)]
pub(crate) struct Rules;
impl Rules {
    pub(super) fn compile(_: &Schema) -> Option<Self> {
        None
    }
    pub(super) fn check(
        &self,
        _: &Value,
        _: Option<&Value>,
        _: &CompiledSchema,
        _: &mut Vec<String>,
    ) -> Vec<FieldError> {
        Vec::new()
    }
}
