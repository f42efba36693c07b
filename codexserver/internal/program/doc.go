// Package program distinguishes a program of the system from one that the model could
// have put in its place.
//
// A rule allows words, such as "go test", and so does a user who approves a command for a
// session. The words do not determine the file that runs. If that file, or a link on the
// way to it, lies in a folder that commands may write without a question, the same words
// can later run another program.
package program
