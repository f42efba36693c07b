// Package program distinguishes a program of the system from one that the model could
// have put in its place.
//
// What a rule allows, or a user approves for a session, is a line of words: "go test". It
// says nothing about the file that the first word leads to. When that file, or a link on
// the way to it, lies in a folder that commands write without a question, the words are
// no longer what was approved.
package program
