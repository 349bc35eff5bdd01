//! `range`.

use super::{Flow, Held, Run, State};
use crate::go::print::show;
use crate::parse::{Branch, Kind, Node, Pipe};
use crate::value::{Elem, Kind as ValueKind, MapType, Value};

impl<'a> State<'a> {
    pub(super) fn walk_range(&mut self, dot: &Held, node: &'a Node, branch: &'a Branch) -> Run<Flow> {
        self.at(node);
        let outer = self.variables.len();
        let value = self.pipeline(dot, &branch.pipe)?.value;
        let Kind::Pipe(pipe) = &branch.pipe.kind else { return self.fail("range without a pipeline") };
        let ran = self.iterate(branch, pipe, &value)?;
        let mut flow = Flow::On;
        if !ran && let Some(list) = &branch.otherwise {
            flow = self.walk_list(dot, list)?;
        }
        self.variables.truncate(outer);
        // Go's `break` in an else belongs to the range that it stands in.
        Ok(if flow == Flow::Break { Flow::On } else { flow })
    }

    /// Was there anything to go through?
    fn iterate(&mut self, branch: &'a Branch, pipe: &'a Pipe, value: &Value) -> Run<bool> {
        let mut count = 0;
        match value {
            Value::Int(_, _) | Value::Uint(_, _) => {
                if pipe.variables.len() > 1 {
                    return self
                        .fail(format!("can't use {} to iterate over more than one variable", show(value)));
                }
                let (end, make): (i64, Box<dyn Fn(i64) -> Value>) = match *value {
                    Value::Int(kind, end) => (end, Box::new(move |at| Value::Int(kind, at))),
                    Value::Uint(kind, end) => (
                        i64::try_from(end).unwrap_or(i64::MAX),
                        Box::new(move |at| Value::Uint(kind, at.unsigned_abs())),
                    ),
                    _ => return Ok(false),
                };
                for at in 0..end.max(0) {
                    count += 1;
                    if !self.once(branch, pipe, Held::invalid(), Held::plain(make(at)))? {
                        break;
                    }
                }
            }
            Value::List(list) => {
                let interface = list.elem() == Elem::Any;
                for (at, item) in list.items().iter().enumerate() {
                    count += 1;
                    let index = Value::int(i64::try_from(at).unwrap_or(i64::MAX));
                    if !self.once(
                        branch,
                        pipe,
                        Held::plain(index),
                        Held { value: item.clone(), interface },
                    )? {
                        break;
                    }
                }
            }
            Value::Bytes(bytes) => {
                for (at, byte) in bytes.iter().enumerate() {
                    count += 1;
                    let index = Value::int(i64::try_from(at).unwrap_or(i64::MAX));
                    let item = Value::Uint(crate::value::UintType::Uint8, u64::from(*byte));
                    if !self.once(branch, pipe, Held::plain(index), Held::plain(item))? {
                        break;
                    }
                }
            }
            Value::Map(_) | Value::Object(_) => {
                let (entries, interface) = match value {
                    Value::Map(map) => (map.entries(), map.map_type() != MapType::Str),
                    Value::Object(object) if object.kind() == ValueKind::Map => (object.entries(), false),
                    Value::Object(object) if object.kind() == ValueKind::Slice => {
                        for (at, (_, item)) in object.entries().into_iter().enumerate() {
                            count += 1;
                            let index = Value::int(i64::try_from(at).unwrap_or(i64::MAX));
                            if !self.once(branch, pipe, Held::plain(index), Held::plain(item))? {
                                break;
                            }
                        }
                        return Ok(count > 0);
                    }
                    other => return self.fail(format!("range can't iterate over {}", show(other))),
                };
                for (key, item) in entries {
                    count += 1;
                    if !self.once(
                        branch,
                        pipe,
                        Held::plain(Value::Str(key)),
                        Held { value: item, interface },
                    )? {
                        break;
                    }
                }
            }
            Value::Nil => {}
            other => return self.fail(format!("range can't iterate over {}", show(other))),
        }
        Ok(count > 0)
    }

    /// One round. Does it go on?
    fn once(&mut self, branch: &'a Branch, pipe: &'a Pipe, index: Held, item: Held) -> Run<bool> {
        let mark = self.variables.len();
        let names = &pipe.variables;
        if pipe.assign {
            if let [first, second] = names.as_slice() {
                self.set_variable(first, index)?;
                self.set_variable(second, item.clone())?;
            } else if let [only] = names.as_slice() {
                self.set_variable(only, item.clone())?;
            }
        } else {
            // The pipeline declared them, and they are on top.
            if !names.is_empty()
                && let Some(top) = self.variables.last_mut()
            {
                top.1 = item.clone();
            }
            if names.len() > 1
                && let Some(next) = mark.checked_sub(2).and_then(|at| self.variables.get_mut(at))
            {
                next.1 = index;
            }
        }
        self.engine.step(self.out.len())?;
        let flow = self.walk_list(&item, &branch.list)?;
        self.variables.truncate(mark);
        Ok(flow != Flow::Break)
    }
}
