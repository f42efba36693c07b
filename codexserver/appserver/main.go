package appserver

import "github.com/codexmcp/codexmcp/codexserver/internal/sandbox"

// Main is the function of the same name in package native: call one of the two
// as the first statement of your program's main. On Linux the app-server and all
// that it starts then die with the program, in whatever way that ends.
func Main() { sandbox.Main() }
