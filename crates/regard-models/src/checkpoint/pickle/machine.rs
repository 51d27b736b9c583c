//! The machine that pickles are programs for, without the parts that run anything.
//!
//! It has the operations of the protocols 2 to 5 that PyTorch writes or that a dictionary of plain
//! values may have. What would call a function or make an object works only for the names in
//! [`Global`]; anything else is an error that says what was wanted.

use super::input::{Input, little};
use super::operations as op;
use super::shown;
use super::values::{Global, Pickled, Place, Storage, Value};
use std::collections::HashMap;

/// Enough for the state of 90,000 tensors. What the machine holds is within a fixed number of
/// bytes for each step, so this is also a limit to its memory.
const MOST_STEPS: usize = 1 << 22;
/// Storages are numbered, by PyTorch before 1.6 with addresses.
const LONGEST_KEY: usize = 64;

/// The machine at work.
struct Machine<'a> {
    input: Input<'a>,
    values: Vec<Value<'a>>,
    stack: Vec<Place>,
    /// How high the stack was at each mark.
    marks: Vec<usize>,
    memo: HashMap<u64, Place>,
    steps: usize,
}

/// Reads one pickle, and gives back what follows it.
pub fn run(bytes: &[u8]) -> Result<(Pickled<'_>, &[u8]), String> {
    let mut machine = Machine {
        input: Input(bytes),
        values: vec![],
        stack: vec![],
        marks: vec![],
        memo: HashMap::new(),
        steps: 0,
    };
    loop {
        machine.count_steps(1)?;
        match machine.input.byte()? {
            op::STOP => {
                let top = machine.pop()?;
                return Ok((Pickled::new(machine.values, top), machine.input.0));
            }
            operation => machine.step(operation)?,
        }
    }
}

impl<'a> Machine<'a> {
    fn count_steps(&mut self, steps: usize) -> Result<(), String> {
        self.steps = self.steps.saturating_add(steps);
        if self.steps > MOST_STEPS {
            return Err(format!(
                "its pickle takes more than {MOST_STEPS} steps, which no dictionary of weights needs"
            ));
        }
        Ok(())
    }

    fn step(&mut self, operation: u8) -> Result<(), String> {
        match operation {
            op::PROTO => self.protocol()?,
            // A frame only says how much may be read ahead.
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
            op::SHORT_BINUNICODE | op::SHORT_BINSTRING => self.text(1)?,
            op::BINUNICODE | op::BINSTRING => self.text(4)?,
            op::BINUNICODE8 => self.text(8)?,
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

            op::GLOBAL => {
                let (module, name) = (utf8(self.input.line()?)?, utf8(self.input.line()?)?);
                self.global(module, name)?;
            }
            op::STACK_GLOBAL => self.stack_global()?,
            op::BINPERSID => self.storage()?,
            op::REDUCE => self.call()?,
            op::BUILD => self.set_attributes()?,
            op::INST => {
                let (module, name) = (utf8(self.input.line()?)?, utf8(self.input.line()?)?);
                return Err(refused(module, name));
            }
            op::OBJ | op::NEWOBJ | op::NEWOBJ_EX => {
                return Err("wants to make an object, which no tensor needs: refused".to_string());
            }
            other => {
                return Err(format!(
                    "its pickle has the operation 0x{other:02x}, which PyTorch does not write; \
                     it may be damaged"
                ));
            }
        }
        Ok(())
    }

    fn protocol(&mut self) -> Result<(), String> {
        match self.input.byte()? {
            2..=5 => Ok(()),
            other => Err(format!("is a pickle of protocol {other}; 2 to 5 are read")),
        }
    }

    // ---- The stack -------------------------------------------------------------------------

    fn push(&mut self, value: Value<'a>) {
        // There are never more values than steps, which fit.
        self.stack.push(self.values.len() as Place);
        self.values.push(value);
    }

    /// What is above the last mark is all that an operation may take.
    fn floor(&self) -> usize {
        self.marks.last().copied().unwrap_or(0)
    }

    fn pop(&mut self) -> Result<Place, String> {
        let top = self.top()?;
        self.stack.pop();
        Ok(top)
    }

    fn top(&self) -> Result<Place, String> {
        self.stack[self.floor()..].last().copied().ok_or_else(nothing_there)
    }

    fn last(&mut self, count: usize) -> Result<Vec<Place>, String> {
        let rest = self.stack.len().checked_sub(count).filter(|rest| *rest >= self.floor());
        Ok(self.stack.split_off(rest.ok_or_else(nothing_there)?))
    }

    fn since_mark(&mut self) -> Result<Vec<Place>, String> {
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
        self.stack.push(*place.ok_or("its pickle is damaged: it recalls what it never kept")?);
        Ok(())
    }

    // ---- Values ----------------------------------------------------------------------------

    fn whole(&mut self, width: u64) -> Result<(), String> {
        let number = self.input.number(width)?;
        self.push(Value::Whole(number as i64));
        Ok(())
    }

    /// An integer with its length before it, the sign in the highest bit.
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

    fn append(&mut self, more: Vec<Place>) -> Result<(), String> {
        let list = self.top()?;
        match &mut self.values[list as usize] {
            Value::Items(items) => items.extend(more),
            _ => return Err("its pickle is damaged: it appends to what is no list".to_string()),
        }
        Ok(())
    }

    fn set(&mut self, more: &[Place]) -> Result<(), String> {
        let dict = self.top()?;
        match (&mut self.values[dict as usize], more.as_chunks()) {
            (Value::Dict(pairs), (more, [])) => pairs.extend(more.iter().map(|[k, v]| (*k, *v))),
            _ => return Err("its pickle is damaged: it sets items that are no pairs".to_string()),
        }
        Ok(())
    }

    // ---- What would run something ----------------------------------------------------------

    fn global(&mut self, module: &str, name: &str) -> Result<(), String> {
        let global = Global::named(module, name).ok_or_else(|| refused(module, name))?;
        self.push(Value::Global(global));
        Ok(())
    }

    fn stack_global(&mut self) -> Result<(), String> {
        let (name, module) = (self.pop()?, self.pop()?);
        match (self.at(module), self.at(name)) {
            (Value::Text(module), Value::Text(name)) => {
                let (module, name) = (*module, *name);
                self.global(module, name)
            }
            _ => Err("its pickle is damaged: a name is no text".to_string()),
        }
    }

    /// What PyTorch puts in place of numbers that are not in the pickle:
    /// `("storage", class, key, device, count)`, before 1.6 with `None` at the end.
    fn storage(&mut self) -> Result<(), String> {
        let unknown = || "its pickle refers to what is no storage of PyTorch".to_string();
        let place = self.pop()?;
        let Value::Items(parts) = self.at(place) else { return Err(unknown()) };
        let parts: Vec<&Value> = parts.iter().take(7).map(|part| self.at(*part)).collect();
        let storage = match parts[..] {
            [
                Value::Text("storage"),
                Value::Global(Global::Storage(kind)),
                Value::Text(key),
                _,
                Value::Whole(count @ 0..),
                ref rest @ ..,
            ] if matches!(rest, [] | [Value::Nothing]) && key.len() <= LONGEST_KEY => {
                Storage { kind: *kind, key, count: count.unsigned_abs() }
            }
            _ => return Err(unknown()),
        };
        self.push(Value::Storage(storage));
        Ok(())
    }

    /// Stands for a call: of the functions that are known, only what they would give is made.
    fn call(&mut self) -> Result<(), String> {
        let (arguments, function) = (self.pop()?, self.pop()?);
        let first = match self.at(arguments) {
            Value::Items(items) => items.first().copied(),
            _ => return Err("its pickle is damaged: a call without arguments".to_string()),
        };
        let global = match self.at(function) {
            Value::Global(global) => *global,
            _ => return Err("wants to call what is no function: refused".to_string()),
        };
        match (global, first, first.map(|first| self.at(first))) {
            (Global::OrderedDict, None, _) => self.push(Value::Dict(vec![])),
            (Global::OrderedDict, Some(items), _) => self.ordered(items)?,
            (Global::Tensor, ..) => self.push(Value::Tensor(arguments)),
            (Global::Parameter, Some(tensor), Some(Value::Tensor(_))) => self.stack.push(tensor),
            (Global::Size, Some(sizes), Some(Value::Items(_))) => self.stack.push(sizes),
            (Global::Place, ..) => self.push(Value::Other),
            _ => return Err(format!("wants to call {global:?} with other arguments: refused")),
        }
        Ok(())
    }

    /// An ordered dictionary as Python 2 wrote it: from a list of pairs.
    fn ordered(&mut self, items: Place) -> Result<(), String> {
        let damaged = "its pickle is damaged: an ordered dictionary of what are no pairs";
        let Value::Items(items) = self.at(items) else { return Err(damaged.to_string()) };
        // The list may be kept and used again, so that a copy of it is more than one step.
        let steps = items.len();
        let pair = |item: &Place| match self.at(*item) {
            Value::Items(pair) => <[Place; 2]>::try_from(&pair[..]).ok(),
            _ => None,
        };
        let pairs: Option<Vec<[Place; 2]>> = items.iter().map(pair).collect();
        let pairs = pairs.ok_or(damaged)?.into_iter().map(|[key, value]| (key, value)).collect();
        self.count_steps(steps)?;
        self.push(Value::Dict(pairs));
        Ok(())
    }

    fn set_attributes(&mut self) -> Result<(), String> {
        self.pop()?;
        // A state dict of PyTorch has attributes about versions, which are not needed.
        match self.at(self.top()?) {
            Value::Dict(_) => Ok(()),
            _ => Err("wants to change an object, which no tensor needs: refused".to_string()),
        }
    }

    fn at(&self, place: Place) -> &Value<'a> {
        &self.values[place as usize]
    }
}

fn nothing_there() -> String {
    "its pickle is damaged: it takes from an empty stack".to_string()
}

fn utf8(bytes: &[u8]) -> Result<&str, String> {
    str::from_utf8(bytes).map_err(|_| "its pickle has text that is not UTF-8".to_string())
}

/// What is said of a name that is not known.
fn refused(module: &str, name: &str) -> String {
    let what = format!("{}.{}", shown(module), shown(name));
    if module == "torch" && name.ends_with("Storage") {
        return format!("holds numbers of the type {what}, which are not read");
    }
    format!(
        "wants to run {what}: refused. Weights are numbers and need no code. If the file holds a \
         whole model, save the model's state_dict() instead, best with safetensors. If you do not \
         know who made it, do not load it with PyTorch either"
    )
}
