package appserver

import "github.com/codexmcp/codexmcp/codexserver/appserver/appclient"

type version = appclient.Version

// keepsSnapshot is the first version measured whose snapshot of the shell leaves out the variables
// that commands must not get.
var keepsSnapshot = version{Minor: 169}

// noOnFailure is the first version measured without the policy on-failure.
var noOnFailure = version{Minor: 143}

// excludesTurns is a version that can leave the turns out of the answer to thread/resume.
// Some earlier ones need the experimental API for that.
var excludesTurns = version{Minor: 154}

// continuesTurns is the first version measured whose rollouts have the id that a client gave to
// its message, and which lets no other process write to the conversation meanwhile.
var continuesTurns = version{Minor: 169}
