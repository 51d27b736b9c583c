//! The pickle virtual machine, without the parts that execute anything.
//!
//! It has the operations of the protocols 2 to 5 that PyTorch and SciPy write or that a dictionary
//! of plain values may need. Imports, calls and object constructions are only recorded in the
//! [`Tree`]; its readers decide which names they accept.

use super::input::{Input, little};
use super::operations as op;
use super::tree::{Made, Object, Tree, Value, ValueIndex};
use std::collections::HashMap;

/// Enough for the state of 90,000 tensors. Each step allocates a bounded number of bytes, so this
/// also limits memory.
const MOST_STEPS: usize = 1 << 22;

pub(super) const NOT_UTF8: &str = "its pickle has text that is not UTF-8";

/// Counts the steps that a file takes, so that a small one cannot run forever.
#[derive(Default)]
pub(super) struct Steps(usize);

impl Steps {
    pub(super) fn count(&mut self, steps: usize) -> Result<(), String> {
        self.0 = self.0.saturating_add(steps);
        if self.0 > MOST_STEPS {
            return Err(format!(
                "its pickle takes more than {MOST_STEPS} steps, which no file of arrays needs"
            ));
        }
        Ok(())
    }
}

/// State of the virtual machine.
struct Machine<'a> {
    input: Input<'a>,
    values: Vec<Value<'a>>,
    stack: Vec<ValueIndex>,
    /// Height of the stack at each mark.
    marks: Vec<usize>,
    memo: HashMap<u64, ValueIndex>,
}

/// Reads one pickle, and returns it with the bytes that follow. Nothing in it is executed or
/// refused.
pub fn read_tree(bytes: &[u8]) -> Result<(Tree<'_>, &[u8]), String> {
    let mut machine = Machine {
        input: Input(bytes),
        values: vec![],
        stack: vec![],
        marks: vec![],
        memo: HashMap::new(),
    };
    let mut steps = Steps::default();
    loop {
        steps.count(1)?;
        match machine.input.byte()? {
            op::STOP => {
                let top = machine.pop()?;
                return Ok((Tree::new(machine.values, top), machine.input.0));
            }
            operation => machine.step(operation)?,
        }
    }
}

impl<'a> Machine<'a> {
    fn step(&mut self, operation: u8) -> Result<(), String> {
        match operation {
            op::PROTO => self.protocol()?,
            // A frame is only a hint for reading ahead.
            op::FRAME => _ = self.input.take(8)?,

            op::NONE => self.push(Value::Nothing),
            op::NEWTRUE | op::NEWFALSE => self.push(Value::Other),
            op::BININT => {
                let number = self.input.number(4)? as u32 as i32;
                self.push(Value::Whole(number.into()));
            }
            op::BININT1 => self.whole(1)?,
            op::BININT2 => self.whole(2)?,
            op::LONG1 => self.long(1)?,
            op::LONG4 => self.long(4)?,
            op::BINFLOAT => {
                self.input.take(8)?;
                self.push(Value::Other);
            }
            op::SHORT_BINUNICODE => self.text(1)?,
            op::BINUNICODE => self.text(4)?,
            op::BINUNICODE8 => self.text(8)?,
            op::SHORT_BINSTRING => self.string(1)?,
            op::BINSTRING => self.string(4)?,
            op::SHORT_BINBYTES => self.bytes(1)?,
            op::BINBYTES => self.bytes(4)?,
            op::BINBYTES8 => self.bytes(8)?,

            op::EMPTY_TUPLE | op::EMPTY_LIST | op::EMPTY_SET => self.push(Value::Items(vec![])),
            op::EMPTY_DICT => self.push(Value::Dict(vec![])),
            op::TUPLE1 => self.tuple(1)?,
            op::TUPLE2 => self.tuple(2)?,
            op::TUPLE3 => self.tuple(3)?,
            op::TUPLE | op::FROZENSET => {
                let items = self.since_mark()?;
                self.push(Value::Items(items));
            }
            op::APPEND => {
                let items = self.last(1)?;
                self.append(items)?;
            }
            op::APPENDS | op::ADDITEMS => {
                let items = self.since_mark()?;
                self.append(items)?;
            }
            op::SETITEM => {
                let items = self.last(2)?;
                self.set(&items)?;
            }
            op::SETITEMS => {
                let items = self.since_mark()?;
                self.set(&items)?;
            }

            op::MARK => self.marks.push(self.stack.len()),
            op::POP => _ = self.pop()?,
            op::POP_MARK => _ = self.since_mark()?,
            op::DUP => self.stack.push(self.top()?),
            op::BINPUT => self.put(1)?,
            op::LONG_BINPUT => self.put(4)?,
            op::MEMOIZE => _ = self.memo.insert(self.memo.len() as u64, self.top()?),
            op::BINGET => self.get(1)?,
            op::LONG_BINGET => self.get(4)?,

            op::GLOBAL => self.global()?,
            op::STACK_GLOBAL => self.stack_global()?,
            op::BINPERSID => {
                let place = self.pop()?;
                self.push(Value::Persistent(place));
            }
            op::REDUCE => self.object(Made::Call)?,
            op::NEWOBJ => self.object(Made::New)?,
            op::INST => {
                let arguments = self.since_mark()?;
                self.global()?;
                self.push(Value::Items(arguments));
                self.object(Made::New)?;
            }
            op::BUILD => self.set_state()?,
            op::OBJ | op::NEWOBJ_EX => {
                return Err("wants to make an object in an unsupported way".to_string());
            }
            other => {
                return Err(format!(
                    "its pickle has the operation 0x{other:02x}, which is not supported; \
                     it may be damaged"
                ));
            }
        }
        Ok(())
    }

    fn protocol(&mut self) -> Result<(), String> {
        match self.input.byte()? {
            2..=5 => Ok(()),
            other => Err(format!("is a pickle of protocol {other}; 2 to 5 are supported")),
        }
    }

    // ---- The stack -------------------------------------------------------------------------

    fn push(&mut self, value: Value<'a>) {
        // There are never more values than steps, so the index fits.
        self.stack.push(self.values.len() as ValueIndex);
        self.values.push(value);
    }

    /// Stack height at the last mark: an operation may take only what is above it.
    fn floor(&self) -> usize {
        self.marks.last().copied().unwrap_or(0)
    }

    fn pop(&mut self) -> Result<ValueIndex, String> {
        let top = self.top()?;
        self.stack.pop();
        Ok(top)
    }

    fn top(&self) -> Result<ValueIndex, String> {
        self.stack[self.floor()..].last().copied().ok_or_else(nothing_there)
    }

    fn last(&mut self, count: usize) -> Result<Vec<ValueIndex>, String> {
        let rest = self.stack.len().checked_sub(count).filter(|rest| *rest >= self.floor());
        Ok(self.stack.split_off(rest.ok_or_else(nothing_there)?))
    }

    fn since_mark(&mut self) -> Result<Vec<ValueIndex>, String> {
        let mark = self.marks.pop().ok_or_else(nothing_there)?;
        Ok(self.stack.split_off(mark))
    }

    fn put(&mut self, width: u64) -> Result<(), String> {
        let index = self.input.number(width)?;
        self.memo.insert(index, self.top()?);
        Ok(())
    }

    fn get(&mut self, width: u64) -> Result<(), String> {
        let index = self.input.number(width)?;
        let place = self.memo.get(&index);
        self.stack.push(*place.ok_or("its pickle is damaged: it gets an undefined memo entry")?);
        Ok(())
    }

    // ---- Values ----------------------------------------------------------------------------

    fn whole(&mut self, width: u64) -> Result<(), String> {
        let number = self.input.number(width)?;
        self.push(Value::Whole(number as i64));
        Ok(())
    }

    /// Reads an integer preceded by its length, in little-endian two's complement.
    fn long(&mut self, width: u64) -> Result<(), String> {
        let bytes = self.input.counted(width)?;
        self.push(match bytes.len() {
            0 => Value::Whole(0),
            length @ 1..=8 => {
                let unused = 64 - 8 * length;
                Value::Whole((little(bytes) << unused).cast_signed() >> unused)
            }
            _ => Value::Long(bytes),
        });
        Ok(())
    }

    fn text(&mut self, width: u64) -> Result<(), String> {
        let text = utf8(self.input.counted(width)?)?;
        self.push(Value::Text(text));
        Ok(())
    }

    /// Reads a string of Python 2. It is decoded once, however often it is referenced.
    fn string(&mut self, width: u64) -> Result<(), String> {
        let bytes = self.input.counted(width)?;
        self.push(str::from_utf8(bytes).map_or(Value::Bytes(bytes), Value::Text));
        Ok(())
    }

    fn bytes(&mut self, width: u64) -> Result<(), String> {
        self.input.counted(width)?;
        self.push(Value::Other);
        Ok(())
    }

    fn tuple(&mut self, count: usize) -> Result<(), String> {
        let items = self.last(count)?;
        self.push(Value::Items(items));
        Ok(())
    }

    fn append(&mut self, more: Vec<ValueIndex>) -> Result<(), String> {
        let list = self.top()?;
        match &mut self.values[list as usize] {
            Value::Items(items) => items.extend(more),
            _ => return Err("its pickle is damaged: it appends to a non-list".to_string()),
        }
        Ok(())
    }

    fn set(&mut self, more: &[ValueIndex]) -> Result<(), String> {
        let dict = self.top()?;
        let pairs = match &mut self.values[dict as usize] {
            Value::Dict(pairs) => Some(pairs),
            Value::Object(object) => Some(&mut object.pairs),
            _ => None,
        };
        match (pairs, more.as_chunks()) {
            (Some(pairs), (more, [])) => pairs.extend(more.iter().map(|[k, v]| (*k, *v))),
            _ => return Err("its pickle is damaged: it sets items that are no pairs".to_string()),
        }
        Ok(())
    }

    // ---- Operations that would execute something -------------------------------------------

    fn global(&mut self) -> Result<(), String> {
        let (module, name) = (utf8(self.input.line()?)?, utf8(self.input.line()?)?);
        self.push(Value::Class { module, name });
        Ok(())
    }

    fn stack_global(&mut self) -> Result<(), String> {
        let (name, module) = (self.pop()?, self.pop()?);
        match (self.at(module), self.at(name)) {
            (&Value::Text(module), &Value::Text(name)) => self.push(Value::Class { module, name }),
            _ => return Err("its pickle is damaged: a name is not text".to_string()),
        }
        Ok(())
    }

    fn object(&mut self, made: Made) -> Result<(), String> {
        let (arguments, class) = (self.pop()?, self.pop()?);
        if !matches!(self.at(arguments), Value::Items(_)) {
            return Err("its pickle is damaged: a call without arguments".to_string());
        }
        if !matches!(self.at(class), Value::Class { .. }) {
            return Err("wants to call something that is not a function: refused".to_string());
        }
        let object = Object { made, class, arguments, pairs: vec![], state: None };
        self.push(Value::Object(Box::new(object)));
        Ok(())
    }

    fn set_state(&mut self) -> Result<(), String> {
        let state = self.pop()?;
        let top = self.top()?;
        match &mut self.values[top as usize] {
            Value::Object(object) => object.state = Some(state),
            _ => return Err("wants to change an object that it did not make".to_string()),
        }
        Ok(())
    }

    fn at(&self, place: ValueIndex) -> &Value<'a> {
        &self.values[place as usize]
    }
}

fn nothing_there() -> String {
    "its pickle is damaged: it takes from an empty stack".to_string()
}

fn utf8(bytes: &[u8]) -> Result<&str, String> {
    str::from_utf8(bytes).map_err(|_| NOT_UTF8.to_string())
}
