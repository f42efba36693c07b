package native

import "github.com/codexmcp/codexmcp/codexserver/internal/sandbox"

// Main lets the engines start your program again, as a keeper of commands or as
// a command in namespaces, and must then be the first statement of its main. It
// does not return in a process that is one of these, and at once in any other.
// It reads no flags and changes nothing in your program.
//
// On Linux all processes that a command started are then gone when it ends or
// when your program does, in whatever way, and [Sandbox] has its tier
// "namespaces". Without the call, and on other systems, see Guarantees.
//
// The initialization of your packages runs in such a process too, without your
// program's environment, and should start nothing.
func Main() { sandbox.Main() }
