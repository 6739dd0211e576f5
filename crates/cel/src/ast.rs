//! The syntax tree.
//!
//! Every node has an id that is unique in its tree. Ids lead to positions in the text ([`Ast::offset`]), and
//! to what the type checker found out ([`crate::Checked`]).

/// Names one node of a tree.
pub type Id = u32;

/// A node of the tree.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// Names the node.
    pub id: Id,
    /// What the node is.
    pub kind: ExprKind,
}

/// What a node is.
#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    /// A constant.
    Literal(Literal),
    /// A variable, or a name with dots that the type checker resolved to one constant.
    Ident(String),
    /// `operand.field`, or `has(operand.field)`.
    Select {
        /// What the field is selected from.
        operand: Box<Expr>,
        /// Name of the field.
        field: String,
        /// Whether this tests if the field is there.
        test: bool,
    },
    /// A call of a function or an operator. Operators are functions with the names in [`operators`].
    Call {
        /// Name of the function. The type checker writes namespaces into it (`sets.contains`).
        function: String,
        /// What stands before the dot.
        target: Option<Box<Expr>>,
        /// Arguments in parentheses.
        args: Vec<Expr>,
    },
    /// `[a, ?b]`
    List {
        /// The items.
        elements: Vec<Expr>,
        /// Indices of the items that are optional (`?b`), ascending.
        optional: Vec<usize>,
    },
    /// `{a: b, ?c: d}`
    Map(Vec<Entry>),
    /// `Name{field: value}`. No such type exists in Kubernetes' dialect, so the type checker refuses it.
    Struct(String),
    /// A loop. Macros expand to it.
    Comprehension(Box<Comprehension>),
}

/// A constant.
#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    /// `null`
    Null,
    /// `true`
    Bool(bool),
    /// `1`
    Int(i64),
    /// `1u`
    Uint(u64),
    /// `1.0`
    Double(f64),
    /// `'text'`
    String(String),
    /// `b'bytes'`
    Bytes(Vec<u8>),
}

/// An entry of a map.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Names the entry.
    pub id: Id,
    /// The key.
    pub key: Expr,
    /// The value.
    pub value: Expr,
    /// Whether the entry is left out when its value is none (`?key: value`).
    pub optional: bool,
}

/// A loop over a list or a map that computes one value.
#[derive(Clone, Debug, PartialEq)]
pub struct Comprehension {
    /// What is iterated.
    pub range: Expr,
    /// Variable of the item of a list or the key of a map; of two variables, the index or the key.
    pub variable: String,
    /// Variable of the item or the value, if there are two.
    pub variable2: Option<String>,
    /// Variable of the result so far.
    pub accumulator: String,
    /// Its first value.
    pub init: Expr,
    /// Whether to go on.
    pub condition: Expr,
    /// Its next value.
    pub step: Expr,
    /// The value of the loop.
    pub result: Expr,
}

/// A parsed expression.
#[derive(Clone, Debug)]
pub struct Ast {
    /// The outermost node.
    pub root: Expr,
    pub(crate) source: Source,
    /// Where nodes start, in characters, by id. Ids of expanded macro calls have none.
    pub(crate) offsets: Vec<Option<u32>>,
}

impl Ast {
    /// Where the node starts in the text, in characters from its start.
    pub fn offset(&self, id: Id) -> Option<usize> {
        let offset = self.offsets.get(usize::try_from(id).ok()?)?;
        offset.and_then(|offset| usize::try_from(offset).ok())
    }

    /// The text of the expression.
    pub fn text(&self) -> &str {
        &self.source.text
    }

    /// How many ids there are: all ids are below it.
    pub fn id_count(&self) -> usize {
        self.offsets.len()
    }
}

/// The text of an expression with its lines.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub text: String,
}

impl Source {
    /// Line (from 1) and column (from 0, in characters) of an offset in characters.
    pub(crate) fn place(&self, offset: usize) -> (usize, usize) {
        let (mut line, mut column) = (1, 0);
        for character in self.text.chars().take(offset) {
            if character == '\n' {
                line += 1;
                column = 0;
            } else {
                column += 1;
            }
        }
        (line, column)
    }
}

/// The names of operators as functions.
pub mod operators {
    /// `a && b`
    pub const AND: &str = "_&&_";
    /// `a || b`
    pub const OR: &str = "_||_";
    /// `!a`
    pub const NOT: &str = "!_";
    /// `-a`
    pub const NEGATE: &str = "-_";
    /// `a ? b : c`
    pub const CONDITIONAL: &str = "_?_:_";
    /// `a == b`
    pub const EQUALS: &str = "_==_";
    /// `a != b`
    pub const NOT_EQUALS: &str = "_!=_";
    /// `a < b`
    pub const LESS: &str = "_<_";
    /// `a <= b`
    pub const LESS_EQUALS: &str = "_<=_";
    /// `a > b`
    pub const GREATER: &str = "_>_";
    /// `a >= b`
    pub const GREATER_EQUALS: &str = "_>=_";
    /// `a in b`
    pub const IN: &str = "@in";
    /// `a + b`
    pub const ADD: &str = "_+_";
    /// `a - b`
    pub const SUBTRACT: &str = "_-_";
    /// `a * b`
    pub const MULTIPLY: &str = "_*_";
    /// `a / b`
    pub const DIVIDE: &str = "_/_";
    /// `a % b`
    pub const MODULO: &str = "_%_";
    /// `a[b]`
    pub const INDEX: &str = "_[_]";
    /// `a[?b]`
    pub const OPTIONAL_INDEX: &str = "_[?_]";
    /// `a.?b`
    pub const OPTIONAL_SELECT: &str = "_?._";
    /// Whether a value is anything but false. The conditions of loops use it.
    pub const NOT_STRICTLY_FALSE: &str = "@not_strictly_false";
    /// Adds entries to a map. The macros that make maps use it.
    pub const MAP_INSERT: &str = "cel.@mapInsert";
    /// Sorts a list by a list of keys. The macro `sortBy` uses it.
    pub const SORT_BY_KEYS: &str = "@sortByAssociatedKeys";
}
