package native

import "github.com/codexmcp/codexmcp/codexserver/internal/sandbox"

// Main lets engines start your program again, as a keeper of commands or as a command in
// namespaces. It must be the first statement of your main. In a process that an engine
// started it does not return; in any other it returns at once. It reads no flags and
// changes nothing in your program.
//
// With Main, on Linux, all processes that a command started are gone when the command
// ends and when your program ends, however it ends, and [Sandbox] has its tier
// "namespaces". Guarantees, in the package's documentation, describes other programs and
// systems.
//
// The initialization of your packages also runs in the processes that an engine starts,
// without your program's environment. It should start nothing.
func Main() { sandbox.Main() }
