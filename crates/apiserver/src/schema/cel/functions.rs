//! The functions and operators that rules may call, with the types they take.
//!
//! The list is that of a Kubernetes API server: what is not in it is an undeclared reference there. A few
//! functions that Kubernetes has and the evaluator has not are in [`UNSUPPORTED`]; definitions that use
//! them are refused.

use super::types::Type;
use std::collections::HashMap;
use std::sync::LazyLock;

/// Functions and macros of Kubernetes that cannot be evaluated here.
pub(super) const UNSUPPORTED: [&str; 8] = [
    "sortBy",
    "transformList",
    "transformMap",
    "transformMapEntry",
    "optMap",
    "optFlatMap",
    "unwrap",
    "unwrapOpt",
];

/// Functions whose result depends on the order of a list.
pub(super) const ORDERED: [&str; 12] = [
    "indexOf",
    "lastIndexOf",
    "join",
    "slice",
    "first",
    "last",
    "reverse",
    "isSorted",
    "flatten",
    "distinct",
    "_+_",
    "format",
];

/// One way to call a function.
#[derive(Debug)]
pub(super) struct Overload {
    /// Whether the first of `takes` stands before the dot.
    pub member: bool,
    pub takes: Vec<Type<'static>>,
    pub gives: Type<'static>,
}

/// All ways to call the function called so.
pub(super) fn overloads(name: &str) -> Option<&'static [Overload]> {
    TABLE.get(name).map(Vec::as_slice)
}

static TABLE: LazyLock<HashMap<&'static str, Vec<Overload>>> = LazyLock::new(|| {
    let mut table: HashMap<&'static str, Vec<Overload>> = HashMap::new();
    for line in SIGNATURES.trim().lines() {
        let (name, rest) = line.split_once(' ').unwrap_or((line, ""));
        let read = rest.split(" | ").filter_map(|text| Reader { rest: text }.overload());
        table.entry(name).or_default().extend(read);
    }
    table
});

struct Reader<'a> {
    rest: &'a str,
}

impl Reader<'_> {
    fn eat(&mut self, token: &str) -> bool {
        self.rest = self.rest.trim_start();
        let found = self.rest.strip_prefix(token);
        self.rest = found.unwrap_or(self.rest);
        found.is_some()
    }

    fn overload(&mut self) -> Option<Overload> {
        let mut takes = Vec::new();
        let member = !self.eat("(");
        if member {
            takes.push(self.kind()?);
            self.eat(".(").then_some(())?;
        }
        while !self.eat(")") {
            takes.push(self.kind()?);
            self.eat(",");
        }
        self.eat(":").then_some(())?;
        Some(Overload { member, takes, gives: self.kind()? })
    }

    fn kind(&mut self) -> Option<Type<'static>> {
        self.rest = self.rest.trim_start();
        let end = self.rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        let word = word.to_owned();
        self.rest = rest;
        Some(match word.as_str() {
            "list" | "optional" => {
                self.eat("(");
                let inner = self.kind()?;
                self.eat(")");
                if word == "list" { Type::list(inner) } else { Type::optional(inner) }
            }
            "map" => {
                self.eat("(");
                let key = self.kind()?;
                self.eat(",");
                let value = self.kind()?;
                self.eat(")");
                Type::Map(key.into(), value.into())
            }
            "dyn" => Type::Dyn,
            "bool" => Type::Bool,
            "int" => Type::Int,
            "uint" => Type::Uint,
            "double" => Type::Double,
            "string" => Type::String,
            "bytes" => Type::Bytes,
            "duration" => Type::Duration,
            "timestamp" => Type::Timestamp,
            "type" => Type::OfTypes,
            "url" => Type::Opaque("kubernetes.URL"),
            "quantity" => Type::Opaque("kubernetes.Quantity"),
            "ip" => Type::Opaque("net.IP"),
            "cidr" => Type::Opaque("net.CIDR"),
            "semver" => Type::Opaque("kubernetes.Semver"),
            "named_format" => Type::Opaque("kubernetes.NamedFormat"),
            "A" => Type::Param('A'),
            "B" => Type::Param('B'),
            _ => return None,
        })
    }
}

const SIGNATURES: &str = "
!_ (bool): bool
-_ (int): int | (double): double
_?_:_ (bool, A, A): A
_==_ (A, A): bool
_!=_ (A, A): bool
_<_ (bool,bool): bool | (int,int): bool | (int,double): bool | (int,uint): bool | (uint,uint): bool | (uint,double): bool | (uint,int): bool | (double,double): bool | (double,int): bool | (double,uint): bool | (string,string): bool | (bytes,bytes): bool | (timestamp,timestamp): bool | (duration,duration): bool
_<=_ (bool,bool): bool | (int,int): bool | (int,double): bool | (int,uint): bool | (uint,uint): bool | (uint,double): bool | (uint,int): bool | (double,double): bool | (double,int): bool | (double,uint): bool | (string,string): bool | (bytes,bytes): bool | (timestamp,timestamp): bool | (duration,duration): bool
_>_ (bool,bool): bool | (int,int): bool | (int,double): bool | (int,uint): bool | (uint,uint): bool | (uint,double): bool | (uint,int): bool | (double,double): bool | (double,int): bool | (double,uint): bool | (string,string): bool | (bytes,bytes): bool | (timestamp,timestamp): bool | (duration,duration): bool
_>=_ (bool,bool): bool | (int,int): bool | (int,double): bool | (int,uint): bool | (uint,uint): bool | (uint,double): bool | (uint,int): bool | (double,double): bool | (double,int): bool | (double,uint): bool | (string,string): bool | (bytes,bytes): bool | (timestamp,timestamp): bool | (duration,duration): bool
_+_ (int,int): int | (uint,uint): uint | (double,double): double | (string,string): string | (bytes,bytes): bytes | (list(A),list(A)): list(A) | (duration,duration): duration | (duration,timestamp): timestamp | (timestamp,duration): timestamp
_-_ (int,int): int | (uint,uint): uint | (double,double): double | (duration,duration): duration | (timestamp,duration): timestamp | (timestamp,timestamp): duration
_*_ (int,int): int | (uint,uint): uint | (double,double): double
_/_ (int,int): int | (uint,uint): uint | (double,double): double
_%_ (int,int): int | (uint,uint): uint
@in (A,list(A)): bool | (A,map(A,B)): bool
@not_strictly_false (bool): bool
_[_] (list(A),int): A | (map(A,B),A): B | (optional(list(A)),int): optional(A) | (optional(map(A,B)),A): optional(B)
_[?_] (list(A),int): optional(A) | (map(A,B),A): optional(B) | (optional(list(A)),int): optional(A) | (optional(map(A,B)),A): optional(B)
type (A): type
dyn (A): dyn
size (string): int | (bytes): int | (list(A)): int | (map(A,B)): int | string.(): int | bytes.(): int | list(A).(): int | map(A,B).(): int
int (int): int | (uint): int | (double): int | (string): int | (timestamp): int | (duration): int
uint (uint): uint | (int): uint | (double): uint | (string): uint
double (double): double | (int): double | (uint): double | (string): double
bool (bool): bool | (string): bool
string (string): string | (bool): string | (int): string | (uint): string | (double): string | (bytes): string | (timestamp): string | (duration): string | (ip): string | (cidr): string
bytes (bytes): bytes | (string): bytes
duration (duration): duration | (string): duration | (int): duration
timestamp (timestamp): timestamp | (string): timestamp | (int): timestamp
contains string.(string): bool
startsWith string.(string): bool
endsWith string.(string): bool
matches (string,string): bool | string.(string): bool
getFullYear timestamp.(): int | timestamp.(string): int
getMonth timestamp.(): int | timestamp.(string): int
getDayOfYear timestamp.(): int | timestamp.(string): int
getDayOfMonth timestamp.(): int | timestamp.(string): int
getDate timestamp.(): int | timestamp.(string): int
getDayOfWeek timestamp.(): int | timestamp.(string): int
getHours timestamp.(): int | timestamp.(string): int | duration.(): int
getMinutes timestamp.(): int | timestamp.(string): int | duration.(): int
getSeconds timestamp.(): int | timestamp.(string): int | duration.(): int
getMilliseconds timestamp.(): int | timestamp.(string): int | duration.(): int
optional.none (): optional(A)
optional.of (A): optional(A)
optional.ofNonZeroValue (A): optional(A)
hasValue optional(A).(): bool
value optional(A).(): A
or optional(A).(optional(A)): optional(A)
orValue optional(A).(A): A
charAt string.(int): string
indexOf string.(string): int | string.(string,int): int | list(A).(A): int
lastIndexOf string.(string): int | string.(string,int): int | list(A).(A): int
lowerAscii string.(): string
upperAscii string.(): string
replace string.(string,string): string | string.(string,string,int): string
split string.(string): list(string) | string.(string,int): list(string)
substring string.(int): string | string.(int,int): string
trim string.(): string
format string.(list(dyn)): string
strings.quote (string): string
join list(string).(): string | list(string).(string): string
sets.contains (list(A),list(A)): bool
sets.equivalent (list(A),list(A)): bool
sets.intersects (list(A),list(A)): bool
isSorted list(int).(): bool | list(uint).(): bool | list(double).(): bool | list(bool).(): bool | list(duration).(): bool | list(timestamp).(): bool | list(string).(): bool | list(bytes).(): bool
sum list(int).(): int | list(uint).(): uint | list(double).(): double | list(duration).(): duration
min list(int).(): int | list(uint).(): uint | list(double).(): double | list(bool).(): bool | list(duration).(): duration | list(timestamp).(): timestamp | list(string).(): string | list(bytes).(): bytes
max list(int).(): int | list(uint).(): uint | list(double).(): double | list(bool).(): bool | list(duration).(): duration | list(timestamp).(): timestamp | list(string).(): string | list(bytes).(): bytes
slice list(A).(int,int): list(A)
flatten list(list(A)).(): list(A) | list(dyn).(int): list(dyn)
sort list(int).(): list(int) | list(uint).(): list(uint) | list(double).(): list(double) | list(bool).(): list(bool) | list(duration).(): list(duration) | list(timestamp).(): list(timestamp) | list(string).(): list(string) | list(bytes).(): list(bytes)
lists.range (int): list(int)
reverse list(A).(): list(A)
distinct list(A).(): list(A)
first list(A).(): optional(A)
last list(A).(): optional(A)
find string.(string): string
findAll string.(string): list(string) | string.(string,int): list(string)
url (string): url
isURL (string): bool
getScheme url.(): string
getHost url.(): string
getHostname url.(): string
getPort url.(): string
getEscapedPath url.(): string
getQuery url.(): map(string,list(string))
quantity (string): quantity
isQuantity (string): bool
sign quantity.(): int
isGreaterThan quantity.(quantity): bool | semver.(semver): bool
isLessThan quantity.(quantity): bool | semver.(semver): bool
compareTo quantity.(quantity): int | semver.(semver): int
asApproximateFloat quantity.(): double
asInteger quantity.(): int
isInteger quantity.(): bool
add quantity.(quantity): quantity | quantity.(int): quantity
sub quantity.(quantity): quantity | quantity.(int): quantity
ip (string): ip | cidr.(): ip
isIP (string): bool
ip.isCanonical (string): bool
family ip.(): int
isUnspecified ip.(): bool
isLoopback ip.(): bool
isLinkLocalMulticast ip.(): bool
isLinkLocalUnicast ip.(): bool
isGlobalUnicast ip.(): bool
cidr (string): cidr
isCIDR (string): bool
containsIP cidr.(string): bool | cidr.(ip): bool
containsCIDR cidr.(string): bool | cidr.(cidr): bool
prefixLength cidr.(): int
masked cidr.(): cidr
format.named (string): optional(named_format)
format.dns1123Label (): named_format
format.dns1123Subdomain (): named_format
format.dns1035Label (): named_format
format.dns1123LabelPrefix (): named_format
format.dns1123SubdomainPrefix (): named_format
format.dns1035LabelPrefix (): named_format
format.qualifiedName (): named_format
format.labelValue (): named_format
format.uri (): named_format
format.uuid (): named_format
format.byte (): named_format
format.date (): named_format
format.datetime (): named_format
validate named_format.(string): optional(list(string))
semver (string): semver | (string,bool): semver
isSemver (string): bool | (string,bool): bool
major semver.(): int
minor semver.(): int
patch semver.(): int
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_signature_is_read() {
        for line in SIGNATURES.trim().lines() {
            let (name, rest) = line.split_once(' ').unwrap();
            let count = overloads(name).unwrap().len();
            assert_eq!(count, rest.split(" | ").count(), "{line}");
        }
    }
}
