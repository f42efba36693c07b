// Package program determines whether the same words still run the same.
//
// A rule allows words, such as "go test", and so does a user who approves a command for a
// session. The words do not determine the files that run. If such a file, or a link on the
// way to it, lies in a folder that commands may write without a question, the same words
// can later run something else.
//
// [Place.Replaceable] is for rules, which cannot remember anything: no program that a
// command names may lie in such a folder. [Place.Content] is for approvals for a session:
// its sum changes when a file changes that a word, or a part of one, names in such a folder.
//
// Both see only names. They do not see what a program reads or starts without naming it.
//
// [Self.StartedBy] recognizes commands that would start the running program again.
package program
