// Package apptypes has the types of the protocol of `codex app-server`: its params, results and
// notifications as structs, its methods and values as constants. Generated from the schema of the
// newest supported Codex, it has the part of the protocol that threads, turns, approvals, accounts,
// models and configuration need. Package appclient is a client with these types.
//
//	CallThreadStart, …     the methods that a client calls
//	AskItem…               the methods that the app-server calls: they ask something
//	NoteTurnCompleted, …   its notifications; [Note] has their params
//	ThreadItemReasoning, … what says the kind of a value with several forms, in its member Type
//
// The struct of a value with several forms has the members of all of them. The comment of each type
// names the definitions of the schema that it is made of.
//
// # Reading
//
// Values are read leniently: the oldest version in use lacks members, the next one has others. An
// unknown value of a string or an unknown type of an item is no error. But the types of what a
// person approves keep the members that are not in the schema in Unknown, so that an approval can
// show them. A member with "not used" is read, but the bridge does not look at it.
//
// Names and members of this package follow Codex: a version of Codex that renames one renames it here.
//
// json/v2 reads and writes these structs by reflection. Strict codecs as those of mcptypes, for the
// same part of the protocol, are 41,700 lines and add 3.7 MB to the program.
package apptypes

// A new version of Codex:
//
// The file uses.json lists what the package has of the schema; schema.json keeps its structure,
// without prose, and SOURCE says where it comes from.
//
//	go generate .                      write the types again
//	CODEX_BIN=codex go generate .      take the schema of an installed Codex first
//
// The second prints what changed. It writes nothing if the bridge cannot use the
// new schema as it is: a method or member that it uses is gone, a value that it sends is not
// complete, or an approval has a member that nobody has read. In what it prints, a member that the
// package does not have is true instead of a type. A new request to us is refused and nothing shows
// it to a person; a new notification is ignored.
//
// With -diff gen prints in the same form what changed since another schema.json, such as that of the
// last release, and writes nothing:
//
//	git show TAG:./schema.json >/tmp/older.json
//	go run ../../../gen -uses uses.json -schema schema.json -diff /tmp/older.json

//go:generate go run ../../../gen -uses uses.json -schema schema.json -out . -codex=$CODEX_BIN
