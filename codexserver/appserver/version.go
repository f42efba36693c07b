package appserver

import "github.com/codexmcp/codexmcp/codexserver/appserver/appclient"

type version = appclient.Version

// keepsSnapshot is the first version measured whose snapshot of the shell leaves out the variables
// that commands must not get.
var keepsSnapshot = version{Minor: 169}

// continuesTurns is the first version measured whose rollouts have the id that a client gave to
// its message, and which lets no other process write to the conversation meanwhile.
var continuesTurns = version{Minor: 169}
