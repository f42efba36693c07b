package main

import (
	"os"
	"strconv"

	"github.com/codexmcp/codexmcp/codexserver/cmd/codex-mcp/internal/terminal"
	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/internal/decide/rulefile"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/spf13/cobra"
)

// completeValues has a shell complete the values of flags.
func (o *options) completeValues(root, ask *cobra.Command) {
	words := func(all ...string) cobra.CompletionFunc {
		return cobra.FixedCompletions(all, cobra.ShellCompDirectiveNoFileComp)
	}
	for flag, values := range map[string]cobra.CompletionFunc{
		"sandbox":          words(texts(protocol.SandboxModes())...),
		"ask-for-approval": words(texts(protocol.ApprovalPolicies())...),
		"engine":           words(engines...),
		"approvals":        words(places...),
		"log":              words(levels...),
		"log-format":       words(logFormats...),
		"profile":          completeProfile,
		"cd":               cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs),
		"model":            cobra.NoFileCompletions,
		"config":           cobra.NoFileCompletions,
		"enable":           cobra.NoFileCompletions,
		"disable":          cobra.NoFileCompletions,
	} {
		_ = root.RegisterFlagCompletionFunc(flag, values) // an error would name a flag that there is not
	}
	_ = ask.RegisterFlagCompletionFunc("resume", completeConversation)
	_ = ask.RegisterFlagCompletionFunc("check", cobra.NoFileCompletions)
}

func texts[W ~string](words []W) (all []string) {
	for _, word := range words {
		all = append(all, string(word))
	}
	return all
}

// completeProfile offers the profiles of config.toml.
func completeProfile(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var names []string
	if home, err := config.Home(os.Getenv); err == nil {
		names, _ = config.Profiles(home) // who starts the program with one learns what is wrong
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// completeConversation offers the newest conversations, each with its first words.
func completeConversation(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	const most = 20
	all := []cobra.Completion{cobra.CompletionWithDesc(native.Last, "the newest one")}
	if home, err := config.Home(os.Getenv); err == nil {
		newest, _ := native.Newest(cmd.Context(), home, most)
		for _, c := range newest {
			all = append(all, cobra.CompletionWithDesc(c.ConversationID, terminal.Row(c.Preview)))
		}
	}
	return all, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

// completeRule offers the numbers of the rules, each with its words.
func completeRule(_ *cobra.Command, words []string, _ string) (all []cobra.Completion, _ cobra.ShellCompDirective) {
	if home, err := config.Home(os.Getenv); err == nil && len(words) == 0 {
		kept, _ := rulefile.New(home, nil).List()
		for _, k := range kept {
			all = append(all, cobra.CompletionWithDesc(strconv.Itoa(k.Number), terminal.Row(k.Rule.Words())))
		}
	}
	return all, cobra.ShellCompDirectiveNoFileComp
}
