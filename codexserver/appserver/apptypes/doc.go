// Package apptypes has the types of the protocol of `codex app-server`: its params, results and
// notifications as structs, its methods and values as constants. It has the part of the protocol that
// threads, turns, approvals, accounts, models and configuration need, as the newest supported Codex has
// it. Package appclient is a client with these types.
//
//	CallThreadStart, …     the methods that a client calls
//	AskItem…               the methods that the app-server calls: they ask something
//	NoteTurnCompleted, …   its notifications; [Note] has their params
//	ThreadItemReasoning, … what says the kind of a value with several forms, in its member Type
//
// The struct of a value with several forms has the members of all of them.
//
// # Reading
//
// Values are read leniently: the oldest version in use lacks members, the next one has others. An
// unknown value of a string or an unknown type of an item is no error. But the types of what a
// person approves keep the members that they do not have in Unknown, so that an approval can
// show them. A member with "not used" is read, but the bridge does not look at it.
//
// Names and members of this package follow Codex: a version of Codex that renames one renames it here.
package apptypes
