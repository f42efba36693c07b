package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// helpColumns is the width of the help.
const helpColumns = 100

// fewNeed are the flags that the help of a command shows only if they are the command's
// own. Help flags shows them all.
var fewNeed = []string{"disable", "enable", "log", "log-format", "profile", "strict-config", "trace"}

// without returns those flags of every command that have no effect on a command, by its words.
func without(command string) string {
	return map[string]string{
		"doctor":       "approvals",
		"page":         "approvals codex config engine version",
		"shared":       "approvals codex config engine version",
		"shared stop":  "approvals codex config engine version",
		"rules":        "approvals codex config engine version",
		"rules add":    "approvals codex config engine version",
		"rules remove": "approvals codex config engine version",
		"completion":   "approvals codex config engine version",
	}[command]
}

// usage writes how a command is used, and the flags that most users need.
func usage(cmd *cobra.Command) error {
	w := cmd.OutOrStdout()
	fmt.Fprintf(w, "Usage:\n  %s\n", cmd.UseLine())
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(w, "  %s [command]\n", cmd.CommandPath())
	}
	if cmd.HasExample() {
		fmt.Fprintf(w, "\nExamples:\n%s\n", cmd.Example)
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprint(w, "\nCommands:\n")
		for _, sub := range cmd.Commands() {
			if sub.IsAvailableCommand() {
				fmt.Fprintf(w, "  %-*s  %s\n", sub.NamePadding(), sub.Name(), sub.Short)
			}
		}
	}
	needed := func(f *pflag.Flag) bool { return !slices.Contains(fewNeed, f.Name) }
	own := func(*pflag.Flag) bool { return true }
	if !cmd.HasParent() {
		own = needed
	}
	writeFlags(w, "Flags", cmd.LocalFlags(), own)
	idle := strings.Fields(without(strings.Join(strings.Fields(cmd.CommandPath())[1:], " ")))
	writeFlags(w, "Flags of every command", cmd.InheritedFlags(), func(f *pflag.Flag) bool { return needed(f) && !slices.Contains(idle, f.Name) })
	fmt.Fprintf(w, "\n%s help flags shows all flags.\n", cmd.Root().Name())
	return nil
}

// writeFlags writes those of the flags that are not hidden and for which show returns true.
func writeFlags(w io.Writer, title string, flags *pflag.FlagSet, show func(*pflag.Flag) bool) {
	shown := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && show(f) {
			shown.AddFlag(f)
		}
	})
	if shown.HasFlags() {
		fmt.Fprintf(w, "\n%s:\n%s", title, shown.FlagUsagesWrapped(helpColumns))
	}
}

// flagsTopic is the help about the flags of all commands.
func flagsTopic() *cobra.Command {
	cmd := &cobra.Command{Use: "flags", Short: "All flags"}
	cmd.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		root, w := cmd.Root(), cmd.OutOrStdout()
		all := func(*pflag.Flag) bool { return true }
		writeFlags(w, "Flags of every command", root.PersistentFlags(), all)
		writeFlags(w, "Flags of "+root.Name()+" and mcp-server; doctor and http have only those with a short form", root.LocalNonPersistentFlags(), all)
		further := func(f *pflag.Flag) bool {
			return f.Name != "help" && root.LocalNonPersistentFlags().Lookup(f.Name) != f
		}
		for _, sub := range root.Commands() {
			if sub.IsAvailableCommand() {
				writeFlags(w, "Further flags of "+sub.Name(), sub.LocalNonPersistentFlags(), further)
			}
		}
	})
	return cmd
}
