//! Instructions of a template, with those that make or look through values replaced by functions that
//! take from the budget first.
//!
//! An operator takes its operands from the stack and leaves its result there, as a filter does. So `a ~
//! b` becomes the filter `~`, whose name no template can write. Filters, tests and methods become
//! arguments of the filters `|`, `is` and `.`. Jumps are moved to where their targets are now.

use super::budget::error;
use minijinja::machinery::{Instruction, Instructions, ast};
use minijinja::{Error, Value};

/// Filters that stand for instructions.
pub mod name {
    pub const ADD: &str = "+";
    pub const MULTIPLY: &str = "*";
    pub const CONCAT: &str = "~";
    pub const EQUAL: &str = "=";
    pub const DIFFERENT: &str = "!";
    pub const LESS: &str = "<.";
    pub const AT_MOST: &str = "<=.";
    pub const MORE: &str = ">.";
    pub const AT_LEAST: &str = ">=.";
    pub const WITHIN: &str = "in.";
    pub const ITEM: &str = "[]";
    pub const SLICE: &str = "[:]";
    pub const LIST: &str = "[,]";
    pub const TUPLE: &str = "(,)";
    pub const MAP: &str = "{:}";
    pub const SET: &str = ".=";
    pub const LOOKED_AT: &str = "?";
    pub const ITERATED: &str = "for.";
    pub const CLOSURE: &str = "closure.";
    pub const FILTER: &str = "|";
    pub const TEST: &str = "is.";
    pub const METHOD: &str = ".";
}

/// Without a place in the engine's table of filters that were looked up.
const UNCACHED: u8 = !0;

/// Longest text that a constant may repeat to: constants are computed while compiling.
const REPEATED: usize = 4096;

/// Rewrites instructions.
///
/// # Errors
/// If there is one that has no limit.
pub fn bounded<'s>(old: &Instructions<'s>) -> Result<Instructions<'s>, Error> {
    let mut new = Instructions::new(old.name(), old.source());
    let (mut moved, mut count) = (vec![], 0_u32);
    while let Some(instruction) = old.get(moved.len() as u32) {
        let line = old.get_line(moved.len() as u32);
        moved.push(count);
        for step in steps(instruction)? {
            match line.and_then(|line| u16::try_from(line).ok()) {
                Some(line) => new.add_with_line(step, line),
                None => new.add(step),
            };
            count += 1;
        }
    }
    // A jump may go to the end.
    moved.push(count);
    for at in 0..count {
        if let Some(
            Instruction::Jump(to)
            | Instruction::JumpIfFalse(to)
            | Instruction::JumpIfFalseOrPop(to)
            | Instruction::JumpIfTrueOrPop(to)
            | Instruction::Iterate(to)
            | Instruction::BuildMacro(_, to, _),
        ) = new.get_mut(at)
        {
            *to = moved[*to as usize];
        }
    }
    Ok(new)
}

/// What an instruction becomes.
fn steps<'s>(instruction: &Instruction<'s>) -> Result<Vec<Instruction<'s>>, Error> {
    use Instruction as I;
    let filter =
        |name: &'static str, arguments: u16| I::ApplyFilter(name, Some(arguments), UNCACHED);
    // With a name as the last argument.
    let named = |by: &'static str, name: &str, arguments: Option<u16>| {
        let arguments = arguments.and_then(|count| count.checked_add(1));
        let arguments = arguments.ok_or_else(|| error("arguments with * are not supported"))?;
        Ok(vec![I::LoadConst(Value::from(name)), filter(by, arguments)])
    };
    let operator = |name| Ok(vec![filter(name, 2)]);
    let build = |name, count: usize| match u16::try_from(count) {
        Ok(count) => Ok(vec![filter(name, count)]),
        Err(_) => Err(error("a list has too many items")),
    };
    match instruction {
        I::EmitRaw(text) => Ok(vec![I::LoadConst(Value::from(*text)), I::Emit]),
        I::Add => operator(name::ADD),
        I::Mul => operator(name::MULTIPLY),
        I::StringConcat => operator(name::CONCAT),
        I::Eq => operator(name::EQUAL),
        I::Ne => operator(name::DIFFERENT),
        I::Lt => operator(name::LESS),
        I::Lte => operator(name::AT_MOST),
        I::Gt => operator(name::MORE),
        I::Gte => operator(name::AT_LEAST),
        I::In => operator(name::WITHIN),
        I::GetItem => operator(name::ITEM),
        I::CompareAndPreserve(_) => {
            let look = || filter(name::LOOKED_AT, 1);
            Ok(vec![look(), I::Swap, look(), I::Swap, instruction.clone()])
        }
        I::Slice => Ok(vec![filter(name::SLICE, 4)]),
        I::BuildList(Some(count)) => build(name::LIST, *count),
        I::BuildTuple(Some(count)) => build(name::TUPLE, *count),
        I::BuildMap(count) => build(name::MAP, 2 * count),
        I::SetAttr(name) => {
            Ok(vec![I::LoadConst(Value::from(*name)), filter(name::SET, 3), I::DiscardTop])
        }
        I::PushLoop(_) => Ok(vec![filter(name::ITERATED, 1), instruction.clone()]),
        I::GetClosure => Ok(vec![instruction.clone(), filter(name::CLOSURE, 1)]),
        I::ApplyFilter(name, arguments, _) => named(name::FILTER, name, *arguments),
        I::PerformTest(name, arguments, _) => named(name::TEST, name, *arguments),
        I::CallMethod(name, arguments) => named(name::METHOD, name, *arguments),
        I::CallBlock(_) => Err(error("self is not supported")),
        I::UnpackLists(_) => Err(error("arguments with * are not supported")),
        I::MergeKwargs(_) => Err(error("arguments with ** are not supported")),
        kept => Ok(vec![kept.clone()]),
    }
}

/// Checks that constants, which the compiler computes, do not grow: that texts and lists are repeated
/// by small numbers only.
pub fn check_constants(tree: &ast::Stmt) -> Result<(), Error> {
    fn statement(tree: &ast::Stmt) -> Result<(), Error> {
        use ast::Stmt as S;
        let all = |body: &[ast::Stmt]| body.iter().try_for_each(statement);
        let some = |body: &[ast::Expr]| body.iter().try_for_each(expression);
        match tree {
            S::Template(node) => all(&node.children),
            S::EmitExpr(node) => expression(&node.expr),
            S::EmitRaw(_) | S::Continue(_) | S::Break(_) => Ok(()),
            S::ForLoop(node) => {
                expression(&node.iter)?;
                node.filter_expr.iter().try_for_each(expression)?;
                all(&node.body)?;
                all(&node.else_body)
            }
            S::IfCond(node) => {
                expression(&node.expr)?;
                all(&node.true_body)?;
                all(&node.false_body)
            }
            S::WithBlock(node) => {
                node.assignments.iter().try_for_each(|(_, value)| expression(value))?;
                all(&node.body)
            }
            S::Set(node) => expression(&node.expr),
            S::SetBlock(node) => {
                node.filter.iter().try_for_each(expression)?;
                all(&node.body)
            }
            S::AutoEscape(node) => {
                expression(&node.enabled)?;
                all(&node.body)
            }
            S::FilterBlock(node) => {
                expression(&node.filter)?;
                all(&node.body)
            }
            S::Macro(node) => {
                some(&node.defaults)?;
                all(&node.body)
            }
            S::CallBlock(node) => {
                arguments(&node.call.args)?;
                expression(&node.call.expr)?;
                some(&node.macro_decl.defaults)?;
                all(&node.macro_decl.body)
            }
            S::Block(_) | S::Import(_) | S::FromImport(_) | S::Extends(_) | S::Include(_) => {
                Err(error("block, import, extends and include are not supported"))
            }
            S::Do(node) => {
                arguments(&node.call.args)?;
                expression(&node.call.expr)
            }
        }
    }
    fn arguments(all: &[ast::CallArg]) -> Result<(), Error> {
        use ast::CallArg as A;
        all.iter().try_for_each(|argument| match argument {
            A::Pos(value) | A::PosSplat(value) | A::Kwarg(_, value) | A::KwargSplat(value) => {
                expression(value)
            }
        })
    }
    fn expression(tree: &ast::Expr) -> Result<(), Error> {
        use ast::Expr as E;
        let all = |trees: &[ast::Expr]| trees.iter().try_for_each(expression);
        match tree {
            E::Var(_) | E::Const(_) => Ok(()),
            E::Slice(node) => {
                expression(&node.expr)?;
                let parts = [&node.start, &node.stop, &node.step];
                parts.into_iter().flatten().try_for_each(expression)
            }
            E::UnaryOp(node) => expression(&node.expr),
            E::BinOp(node) => {
                if matches!(node.op, ast::BinOpKind::Mul) {
                    repeated(&node.left, &node.right)?;
                }
                expression(&node.left)?;
                expression(&node.right)
            }
            E::Compare(node) => {
                expression(&node.expr)?;
                node.ops.iter().try_for_each(|op| expression(&op.expr))
            }
            E::IfExpr(node) => {
                expression(&node.test_expr)?;
                expression(&node.true_expr)?;
                node.false_expr.iter().try_for_each(expression)
            }
            E::Filter(node) => {
                node.expr.iter().try_for_each(expression)?;
                arguments(&node.args)
            }
            E::Test(node) => {
                expression(&node.expr)?;
                arguments(&node.args)
            }
            E::GetAttr(node) => expression(&node.expr),
            E::GetItem(node) => {
                expression(&node.expr)?;
                expression(&node.subscript_expr)
            }
            E::Call(node) => {
                expression(&node.expr)?;
                arguments(&node.args)
            }
            E::List(node) => all(&node.items),
            E::Tuple(node) => all(&node.items),
            E::Map(node) => {
                all(&node.keys)?;
                all(&node.values)
            }
        }
    }
    /// Checks a product. Numbers, and what is no constant, are not repeated by the compiler.
    fn repeated(left: &ast::Expr, right: &ast::Expr) -> Result<(), Error> {
        let number = |tree: &ast::Expr| matches!(tree, ast::Expr::Const(c) if c.value.is_number());
        if !is_constant(left) || !is_constant(right) || (number(left) && number(right)) {
            return Ok(());
        }
        let (text, times) = if number(left) { (right, left) } else { (left, right) };
        if let (ast::Expr::Const(text), ast::Expr::Const(times)) = (text, times)
            && let (Some(text), Some(times)) = (text.value.as_str(), times.value.as_usize())
            && text.len().saturating_mul(times) <= REPEATED
        {
            return Ok(());
        }
        Err(error(format!(
            "a constant is repeated with *: need a text and a number, {REPEATED} bytes at most"
        )))
    }
    fn is_constant(tree: &ast::Expr) -> bool {
        use ast::Expr as E;
        match tree {
            E::Const(_) => true,
            E::UnaryOp(node) => is_constant(&node.expr),
            E::BinOp(node) => is_constant(&node.left) && is_constant(&node.right),
            E::Compare(node) => {
                is_constant(&node.expr) && node.ops.iter().all(|op| is_constant(&op.expr))
            }
            E::List(node) => node.items.iter().all(is_constant),
            E::Tuple(node) => node.items.iter().all(is_constant),
            E::Map(node) => node.keys.iter().chain(&node.values).all(is_constant),
            _ => false,
        }
    }
    statement(tree)
}
