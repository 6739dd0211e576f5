//! The table of functions: a name, and for each overload `id=signature`.

pub(super) const SIGNATURES: &str = "
!_ logical_not=(bool): bool
-_ negate_double=(double): double | negate_int64=(int): int
_&&_ logical_and=(bool,bool): bool
_||_ logical_or=(bool,bool): bool
_?_:_ conditional=(bool, A, A): A
_==_ equals=(A, A): bool
_!=_ not_equals=(A, A): bool
_<_ less_bool=(bool,bool): bool | less_int64=(int,int): bool | less_int64_double=(int,double): bool | less_int64_uint64=(int,uint): bool | less_uint64=(uint,uint): bool | less_uint64_double=(uint,double): bool | less_uint64_int64=(uint,int): bool | less_double=(double,double): bool | less_double_int64=(double,int): bool | less_double_uint64=(double,uint): bool | less_string=(string,string): bool | less_bytes=(bytes,bytes): bool | less_timestamp=(timestamp,timestamp): bool | less_duration=(duration,duration): bool
_<=_ less_equals_bool=(bool,bool): bool | less_equals_int64=(int,int): bool | less_equals_int64_double=(int,double): bool | less_equals_int64_uint64=(int,uint): bool | less_equals_uint64=(uint,uint): bool | less_equals_uint64_double=(uint,double): bool | less_equals_uint64_int64=(uint,int): bool | less_equals_double=(double,double): bool | less_equals_double_int64=(double,int): bool | less_equals_double_uint64=(double,uint): bool | less_equals_string=(string,string): bool | less_equals_bytes=(bytes,bytes): bool | less_equals_timestamp=(timestamp,timestamp): bool | less_equals_duration=(duration,duration): bool
_>_ greater_bool=(bool,bool): bool | greater_int64=(int,int): bool | greater_int64_double=(int,double): bool | greater_int64_uint64=(int,uint): bool | greater_uint64=(uint,uint): bool | greater_uint64_double=(uint,double): bool | greater_uint64_int64=(uint,int): bool | greater_double=(double,double): bool | greater_double_int64=(double,int): bool | greater_double_uint64=(double,uint): bool | greater_string=(string,string): bool | greater_bytes=(bytes,bytes): bool | greater_timestamp=(timestamp,timestamp): bool | greater_duration=(duration,duration): bool
_>=_ greater_equals_bool=(bool,bool): bool | greater_equals_int64=(int,int): bool | greater_equals_int64_double=(int,double): bool | greater_equals_int64_uint64=(int,uint): bool | greater_equals_uint64=(uint,uint): bool | greater_equals_uint64_double=(uint,double): bool | greater_equals_uint64_int64=(uint,int): bool | greater_equals_double=(double,double): bool | greater_equals_double_int64=(double,int): bool | greater_equals_double_uint64=(double,uint): bool | greater_equals_string=(string,string): bool | greater_equals_bytes=(bytes,bytes): bool | greater_equals_timestamp=(timestamp,timestamp): bool | greater_equals_duration=(duration,duration): bool
_+_ add_bytes=(bytes,bytes): bytes | add_double=(double,double): double | add_duration_duration=(duration,duration): duration | add_duration_timestamp=(duration,timestamp): timestamp | add_timestamp_duration=(timestamp,duration): timestamp | add_int64=(int,int): int | add_list=(list(A),list(A)): list(A) | add_string=(string,string): string | add_uint64=(uint,uint): uint
_-_ subtract_double=(double,double): double | subtract_duration_duration=(duration,duration): duration | subtract_int64=(int,int): int | subtract_timestamp_duration=(timestamp,duration): timestamp | subtract_timestamp_timestamp=(timestamp,timestamp): duration | subtract_uint64=(uint,uint): uint
_*_ multiply_double=(double,double): double | multiply_int64=(int,int): int | multiply_uint64=(uint,uint): uint
_/_ divide_double=(double,double): double | divide_int64=(int,int): int | divide_uint64=(uint,uint): uint
_%_ modulo_int64=(int,int): int | modulo_uint64=(uint,uint): uint
@in in_list=(A,list(A)): bool | in_map=(A,map(A,B)): bool
@not_strictly_false not_strictly_false=(bool): bool
_[_] index_list=(list(A),int): A | index_map=(map(A,B),A): B | optional_list_index_int=(optional(list(A)),int): optional(A) | optional_map_index_value=(optional(map(A,B)),A): optional(B)
_[?_] list_optindex_optional_int=(list(A),int): optional(A) | optional_list_optindex_optional_int=(optional(list(A)),int): optional(A) | map_optindex_optional_value=(map(A,B),A): optional(B) | optional_map_optindex_optional_value=(optional(map(A,B)),A): optional(B)
cel.@mapInsert @mapInsert_map_key_value=(map(A,B),A,B): map(A,B) | @mapInsert_map_map=(map(A,B),map(A,B)): map(A,B)
@sortByAssociatedKeys list_$_sortByAssociatedKeys=list(A).(list($T)): list(A)
type type=(A): type(A)
dyn to_dyn=(A): dyn
size size_bytes=(bytes): int | bytes_size=bytes.(): int | size_list=(list(A)): int | list_size=list(A).(): int | size_map=(map(A,B)): int | map_size=map(A,B).(): int | size_string=(string): int | string_size=string.(): int
int int64_to_int64=(int): int | double_to_int64=(double): int | duration_to_int64=(duration): int | string_to_int64=(string): int | timestamp_to_int64=(timestamp): int | uint64_to_int64=(uint): int
uint uint64_to_uint64=(uint): uint | double_to_uint64=(double): uint | int64_to_uint64=(int): uint | string_to_uint64=(string): uint
double double_to_double=(double): double | int64_to_double=(int): double | string_to_double=(string): double | uint64_to_double=(uint): double
bool bool_to_bool=(bool): bool | string_to_bool=(string): bool
string string_to_string=(string): string | bool_to_string=(bool): string | bytes_to_string=(bytes): string | double_to_string=(double): string | duration_to_string=(duration): string | int64_to_string=(int): string | timestamp_to_string=(timestamp): string | uint64_to_string=(uint): string | ip_to_string=(ip): string | cidr_to_string=(cidr): string
bytes bytes_to_bytes=(bytes): bytes | string_to_bytes=(string): bytes
duration duration_to_duration=(duration): duration | int64_to_duration=(int): duration | string_to_duration=(string): duration
timestamp timestamp_to_timestamp=(timestamp): timestamp | int64_to_timestamp=(int): timestamp | string_to_timestamp=(string): timestamp
contains contains_string=string.(string): bool
startsWith starts_with_string=string.(string): bool
endsWith ends_with_string=string.(string): bool
matches matches=(string,string): bool | matches_string=string.(string): bool
getFullYear timestamp_to_year=timestamp.(): int | timestamp_to_year_with_tz=timestamp.(string): int
getMonth timestamp_to_month=timestamp.(): int | timestamp_to_month_with_tz=timestamp.(string): int
getDayOfYear timestamp_to_day_of_year=timestamp.(): int | timestamp_to_day_of_year_with_tz=timestamp.(string): int
getDayOfMonth timestamp_to_day_of_month=timestamp.(): int | timestamp_to_day_of_month_with_tz=timestamp.(string): int
getDate timestamp_to_day_of_month_1_based=timestamp.(): int | timestamp_to_day_of_month_1_based_with_tz=timestamp.(string): int
getDayOfWeek timestamp_to_day_of_week=timestamp.(): int | timestamp_to_day_of_week_with_tz=timestamp.(string): int
getHours timestamp_to_hours=timestamp.(): int | timestamp_to_hours_with_tz=timestamp.(string): int | duration_to_hours=duration.(): int
getMinutes timestamp_to_minutes=timestamp.(): int | timestamp_to_minutes_with_tz=timestamp.(string): int | duration_to_minutes=duration.(): int
getSeconds timestamp_to_seconds=timestamp.(): int | timestamp_to_seconds_tz=timestamp.(string): int | duration_to_seconds=duration.(): int
getMilliseconds timestamp_to_milliseconds=timestamp.(): int | timestamp_to_milliseconds_with_tz=timestamp.(string): int | duration_to_milliseconds=duration.(): int
optional.none optional_none=(): optional(A)
optional.of optional_of=(A): optional(A)
optional.ofNonZeroValue optional_ofNonZeroValue=(A): optional(A)
optional.unwrap optional_unwrap=(list(optional(A))): list(A)
unwrapOpt optional_unwrapOpt=list(optional(A)).(): list(A)
hasValue optional_hasValue=optional(A).(): bool
value optional_value=optional(A).(): A
or optional_or_optional=optional(A).(optional(A)): optional(A)
orValue optional_orValue_value=optional(A).(A): A
charAt string_char_at_int=string.(int): string
indexOf string_index_of_string=string.(string): int | string_index_of_string_int=string.(string,int): int | list_a_index_of_int=list(A).(A): int
lastIndexOf string_last_index_of_string=string.(string): int | string_last_index_of_string_int=string.(string,int): int | list_a_last_index_of_int=list(A).(A): int
lowerAscii string_lower_ascii=string.(): string
upperAscii string_upper_ascii=string.(): string
replace string_replace_string_string=string.(string,string): string | string_replace_string_string_int=string.(string,string,int): string
split string_split_string=string.(string): list(string) | string_split_string_int=string.(string,int): list(string)
substring string_substring_int=string.(int): string | string_substring_int_int=string.(int,int): string
trim string_trim=string.(): string
format string_format=string.(list(dyn)): string
strings.quote strings_quote=(string): string
join list_join=list(string).(): string | list_join_string=list(string).(string): string
sets.contains list_sets_contains_list=(list(A),list(A)): bool
sets.equivalent list_sets_equivalent_list=(list(A),list(A)): bool
sets.intersects list_sets_intersects_list=(list(A),list(A)): bool
isSorted list_$_is_sorted_bool=list($T).(): bool
sum list_$_sum_$=list($N).(): $N
min list_$_min_$=list($T).(): $T
max list_$_max_$=list($T).(): $T
slice list_slice=list(A).(int,int): list(A)
flatten list_flatten=list(list(A)).(): list(A) | list_flatten_int=list(dyn).(int): list(dyn)
sort list_$_sort=list($T).(): list($T)
lists.range lists_range=(int): list(int)
reverse list_reverse=list(A).(): list(A)
distinct list_distinct=list(A).(): list(A)
first list_first=list(A).(): optional(A)
last list_last=list(A).(): optional(A)
find string_find_string=string.(string): string
findAll string_find_all_string=string.(string): list(string) | string_find_all_string_int=string.(string,int): list(string)
url string_to_url=(string): url
isURL is_url_string=(string): bool
getScheme url_get_scheme=url.(): string
getHost url_get_host=url.(): string
getHostname url_get_hostname=url.(): string
getPort url_get_port=url.(): string
getEscapedPath url_get_escaped_path=url.(): string
getQuery url_get_query=url.(): map(string,list(string))
quantity string_to_quantity=(string): quantity
isQuantity is_quantity_string=(string): bool
sign quantity_sign=(quantity): int
isGreaterThan quantity_is_greater_than=quantity.(quantity): bool | semver_is_greater_than=semver.(semver): bool
isLessThan quantity_is_less_than=quantity.(quantity): bool | semver_is_less_than=semver.(semver): bool
compareTo quantity_compare_to=quantity.(quantity): int | semver_compare_to=semver.(semver): int
asApproximateFloat quantity_get_float=quantity.(): double
asInteger quantity_get_int=quantity.(): int
isInteger quantity_is_integer=quantity.(): bool
add quantity_add=quantity.(quantity): quantity | quantity_add_int=quantity.(int): quantity
sub quantity_sub=quantity.(quantity): quantity | quantity_sub_int=quantity.(int): quantity
ip string_to_ip=(string): ip | cidr_ip=cidr.(): ip
isIP is_ip=(string): bool
ip.isCanonical ip_is_canonical=(string): bool
family ip_family=ip.(): int
isUnspecified ip_is_unspecified=ip.(): bool
isLoopback ip_is_loopback=ip.(): bool
isLinkLocalMulticast ip_is_link_local_multicast=ip.(): bool
isLinkLocalUnicast ip_is_link_local_unicast=ip.(): bool
isGlobalUnicast ip_is_global_unicast=ip.(): bool
cidr string_to_cidr=(string): cidr
isCIDR is_cidr=(string): bool
containsIP cidr_contains_ip_string=cidr.(string): bool | cidr_contains_ip_ip=cidr.(ip): bool
containsCIDR cidr_contains_cidr_string=cidr.(string): bool | cidr_contains_cidr=cidr.(cidr): bool
prefixLength cidr_prefix_length=cidr.(): int
masked cidr_masked=cidr.(): cidr
format.named format-named=(string): optional(named_format)
format.dns1123Label format.dns1123Label=(): named_format
format.dns1123Subdomain format.dns1123Subdomain=(): named_format
format.dns1035Label format.dns1035Label=(): named_format
format.dns1123LabelPrefix format.dns1123LabelPrefix=(): named_format
format.dns1123SubdomainPrefix format.dns1123SubdomainPrefix=(): named_format
format.dns1035LabelPrefix format.dns1035LabelPrefix=(): named_format
format.qualifiedName format.qualifiedName=(): named_format
format.labelValue format.labelValue=(): named_format
format.uri format.uri=(): named_format
format.uuid format.uuid=(): named_format
format.byte format.byte=(): named_format
format.date format.date=(): named_format
format.datetime format.datetime=(): named_format
validate format-validate=named_format.(string): optional(list(string))
semver string_to_semver=(string): semver | string_bool_to_semver=(string,bool): semver
isSemver is_semver_string=(string): bool | is_semver_string_bool=(string,bool): bool
major semver_major=semver.(): int
minor semver_minor=semver.(): int
patch semver_patch=semver.(): int
";
