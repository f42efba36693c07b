package approval

import (
	"context"

	"github.com/codexmcp/codexmcp/elicit"
)

// Rules answer questions before a person is asked. They see only what an engine asks about,
// and not what its approval policy runs without a question. The words of a rule are the
// beginning of an argv: ["git", "push"] covers every git push.
//
// In a shell script of plain commands, the rules judge each command. One denied command
// denies the script; it is allowed if all its commands are. Allow covers only a script of
// plain commands that is run by a shell without a path or in a folder of the system, with -c or -lc
// and no other argument. Deny and Ask look into everything that looks like a shell, and behind programs such as
// env that start others; options may stand between their words, and a program without a folder
// covers that program in any folder. What may hide one of their commands counts as one.
type Rules struct {
	// Allow lists commands that run without a question.
	Allow []Rule
	// Deny lists commands that do not run; it wins over Allow and Ask.
	Deny [][]string
	// Ask lists commands that a person is asked about each time: it wins over Allow, over what
	// Decide approves, and over what was approved before. The engine must be told too if it is to
	// ask about what its policy would run: see native.Options.
	Ask [][]string
	// Hosts are hosts of the network that commands in the sandbox may reach: see [HostRules].
	Hosts HostRules
	// Decide answers questions that the lists do not decide, about patches too. If it
	// returns false, the client is asked. An outcome needs only a Decision, and may have
	// Feedback for the model. Decide is called from several goroutines at a time and must
	// return when ctx ends. A panic in it denies. Default: none.
	Decide func(ctx context.Context, r *Request) (out elicit.Outcome, ok bool)
}

// HostRules answer for hosts that a command in the sandbox wants to reach. Each is a name in lower case, or *.name for
// what is below it, such as *.npmjs.org. The engine must be told that hosts are asked about: see native.Options.
type HostRules struct {
	// Allow lists hosts that are reached without a question.
	Allow []string
	// Deny lists hosts that are not reached; it wins over Allow and Ask.
	Deny []string
	// Ask lists hosts that a person is asked about for each command: it wins over Allow, over what Decide approves, and
	// over what was approved before.
	Ask []string
}

// Rule allows commands.
type Rule struct {
	// Command is the beginning of an argv. An empty rule covers nothing.
	Command []string
	// Outside also allows the commands outside the sandbox, where the native engine starts only
	// programs that no command can write, with a list of variables. Without it the rule answers only
	// questions after which the command runs in the sandbox: see Confinable in [Command].
	Outside bool
	// Environ are names of further variables that the commands get outside the sandbox. The native engine never passes
	// the key of a model provider.
	Environ []string
}
