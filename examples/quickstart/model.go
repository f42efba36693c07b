package main

import (
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
)

// scriptedModel replaces a model: it asks for one command and then reports the result in its
// own words.
func scriptedModel() *providertest.Server {
	return providertest.New(
		providertest.Call(providertest.Shell("call-1", "git", "init", "-b", "main")),
		providertest.Turn{Func: func(r providertest.Request) providertest.Turn {
			output := strings.TrimSpace(r.LastToolOutput())
			if i := strings.Index(output, "Initialized"); i >= 0 {
				return providertest.Say("Your repository is ready. git said: " + output[i:])
			}
			return providertest.Say("There is no repository. The answer was: " + output)
		}},
	)
}
