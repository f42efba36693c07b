// Package safefile reads, replaces, locks and creates files that other processes can touch
// at any time.
//
// [Read], [Open] and [OpenIn] take names that come from a workspace, a configuration or a
// client. Such a name can lead to a named pipe without a writer, an endless device or a
// terminal. They open a file without waiting, check that it is a regular file, and never
// wait for its content. [Write] replaces a file so that no reader ever sees half of one.
// [Lock] and [Share] lock an open file between processes until it is closed or the process
// ends. [Log] appends lines to a file, and follows nothing that others put in its place.
// [LoadSecret] keeps a secret in a file that only its owner can read. A [Reserve] keeps room on a disk.
//
// Their errors name the path, but for locks.
package safefile
