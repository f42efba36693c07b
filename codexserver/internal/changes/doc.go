// Package changes finds what a turn changes in its folder: one [Before], and one [Before.After].
//
// It takes a snapshot of the folder before the turn, or before the turn's first change, and compares the folder
// with it afterwards. So it finds the changes of commands as well as those of patches, and does not depend on
// what the model says. If a snapshot is not possible, only the changes of patches are known, and [Found] says so.
package changes
