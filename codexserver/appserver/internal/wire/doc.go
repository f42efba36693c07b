// Package wire has the part of the app-server's protocol that the bridge uses, as the schema of
// the newest Codex says. The file uses.json lists that part; schema.json keeps its structure,
// without prose, and SOURCE says where it comes from.
//
//	go generate .                      write the types again
//	CODEX_BIN=codex go generate .      take the schema of an installed Codex first
//
// The second prints what changed for the bridge. It writes nothing if the bridge cannot use the
// new schema as it is: a method or member that it uses is gone, a value that it sends is not
// complete, or an approval has a member that nobody has read. In what it prints, a member that the
// bridge does not use is true instead of a type. A new request to us is refused and nothing shows it
// to a person; a new notification is ignored.
//
// Values are read leniently: the oldest version in use lacks members, the next one has others. An
// unknown value of a string or an unknown type of an item is no error. But the types of what a
// person approves keep the members that are not in the schema, so that an approval can show them.
//
// json/v2 reads and writes these structs by reflection. Strict codecs as those of mcptypes, for the
// same part of the protocol, are 41,700 lines and add 3.7 MB to the program.
package wire

//go:generate go run ../../../../gen -uses uses.json -schema schema.json -out . -codex=$CODEX_BIN
