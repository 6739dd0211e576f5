//! The defects of roperator 0.3, one file each: an operator that has just this one, how it is caught, and the same operator
//! with the lines that mend it, which passes everything.
//!
//! Most of them converge to something each time, so what gives them away is that the end depends on the way: an operator
//! that missed the first of two specs comes to another end than one that saw both.
//!
//! | defect | file | caught as | by |
//! |---|---|---|---|
//! | removed list items stay | `removed_list_items` | end state | a missed spec (watches) |
//! | removed keys of maps stay | `removed_map_keys` | end state | a missed spec (watches) |
//! | removed fields of the status stay | `removed_status_fields` | end state | a late or missed spec (watches) |
//! | a desired list without items is no wish | `empty_list` | end state | a missed spec (watches) |
//! | a child survives by the name of one of another kind | `same_name_of_another_kind` | end state | a missed spec (watches) |
//! | the first refused child keeps the others from being written | `first_error` | end state | a missed spec (watches) |
//! | an error deletes all children | `failed_sync` | lost | an error of any request |
//! | a child without its label is created for ever | `lost_label` | second pass, when `silent` | no fault |
//! | a long list fills the channel and stops everything | `full_channel` | end state | an expired watch |
//! | an error of one watch makes everything wait | `sleep_with_the_lock` | property about time | an expired watch |
//! | nobody misses a child that was deleted in a gap | `watch_gap` | end state, second pass | an expired or missed watch |
//! | every sync waits half a second | `debounce` | property about time | no fault |
//! | a finalizer that waits does so twice | `finalize_waits_twice` | property about time | no fault |
//! | deletes hit whatever has the name | `delete_by_name` | lost | two leaders |
//! | the status is written before the children | `status_before_children` | property | no fault |
//!
//! Properties about time read the times that the server and the operator write into objects. They hold without faults
//! only, or with the one that is named: most faults take time by themselves.
//!
//! What cannot be shown here does not show in any state that a world comes to. `docs/defects.md` names the tests that
//! show it of `mainstay`:
//!
//! | defect | why not |
//! |---|---|
//! | with its pages served, the operator never ends | programs of a world never end by themselves: they are killed |
//! | health is always fine | nobody asks a program of a world for its health: there are no sockets |
//! | metrics have the names of objects in their labels | nor for its metrics |
//! | any number of handlers runs at once | how many handlers run is inside of the program; an author who sees it from outside, as requests under way, has no property for requests |
//! | items of lists are told apart by a field that happens to be called `name`, or by their place | a comparison, which is a pure function with tests of its own |
//! | a finalizer is put on every parent | a choice: it is the same in all runs |
//! | no pages of lists, no bookmarks | costs time and memory only |

mod by_hand;
mod debounce;
mod delete_by_name;
mod empty_list;
mod failed_sync;
mod finalize_waits_twice;
mod first_error;
mod full_channel;
mod lost_label;
mod removed_list_items;
mod removed_map_keys;
mod removed_status_fields;
mod same_name_of_another_kind;
mod shops;
mod sleep_with_the_lock;
mod status_before_children;
mod watch_gap;
