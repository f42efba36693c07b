package command_test

import (
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/command"
	"github.com/codexmcp/codexmcp/codexserver/internal/keeper"
	"github.com/codexmcp/codexmcp/codexserver/internal/sandbox"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// BenchmarkRun runs "true" with and without a keeper, free and confined in both
// tiers.
func BenchmarkRun(b *testing.B) {
	var pool keeper.Pool
	b.Cleanup(func() { _ = pool.Close() })
	for _, keeping := range []struct {
		name string
		pool *keeper.Pool
	}{{"own", nil}, {"kept", &pool}} {
		b.Run(keeping.name+"/free", func(b *testing.B) { benchmark(b, keeping.pool, nil) })
		for _, tier := range []sandbox.Tier{sandbox.TierThread, sandbox.TierNamespaces} {
			c, err := sandbox.New(sandbox.Options{Tier: tier}).Confine(protocol.SandboxPolicy{Mode: protocol.SandboxReadOnly}, "/", nil)
			if err != nil {
				b.Logf("%s: %v", tier, err)
				continue
			}
			b.Run(keeping.name+"/"+string(tier), func(b *testing.B) { benchmark(b, keeping.pool, c) })
		}
	}
}

func benchmark(b *testing.B, pool *keeper.Pool, starter command.Starter) {
	spec := command.Spec{Argv: []string{"/bin/true"}, Dir: "/", Env: path, Keepers: pool, Starter: starter}
	for b.Loop() {
		if res, err := command.Run(b.Context(), spec, nil); err != nil || res.ExitCode != 0 {
			b.Fatalf("%+v, %v", res, err)
		}
	}
}
