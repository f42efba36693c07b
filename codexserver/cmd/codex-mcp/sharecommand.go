package main

import (
	"context"

	"github.com/codexmcp/codexmcp/codexserver/cmd/codex-mcp/internal/shared"
	"github.com/spf13/cobra"
)

func (o *options) sharedCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "shared",
		Short: "Show the servers that clients share, and end them",
		Long: `Shows the servers that --shared has started: how many clients are connected to each,
and how many clients, connected or gone, have a turn that runs.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			o.run = withShared(func(ctx context.Context, f *shared.Folder, name string) (*shared.Status, error) {
				return f.Status(ctx, name)
			}, "server")
			return nil
		},
	}
	stop := &cobra.Command{
		Use:   "stop",
		Short: "End the shared servers and all their turns",
		Long:  `Ends every shared server. Their turns are interrupted, and their tasks say so.`,
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			o.run = withShared(func(ctx context.Context, f *shared.Folder, name string) (*shared.Status, error) {
				return f.Stop(ctx, name)
			}, "ended")
			return nil
		},
	}
	cmd.AddCommand(stop)
	return cmd
}
