//! Outermost first.

use super::Folder;
use crate::fold::{FoldBuilder, Item};
use crate::{Result, RuleId, Symbol};

/// Takes the longest loop body first.
#[derive(Clone, Debug, Default)]
pub struct Outermost {}

impl Folder for Outermost {
    fn name(&self) -> &'static str {
        "outermost"
    }

    fn fold(&self, stream: &[Symbol], builder: &mut FoldBuilder) -> Result<RuleId> {
        let body: Vec<Item> = stream.iter().map(|&symbol| Item::once(symbol)).collect();
        builder.rule(&body)
    }
}
