package sandbox_test

import (
	"slices"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/proc"
	"github.com/codexmcp/codexmcp/codexserver/internal/sandbox"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// BenchmarkRun runs "true" with and without a keeper, free and confined in both tiers. It
// reports the median time of a free command without a keeper, and the medians of the
// others as multiples of it.
func BenchmarkRun(b *testing.B) {
	specs := map[string]proc.Spec{}
	starters := map[string]proc.Starter{"free": nil}
	for _, tier := range []sandbox.Tier{sandbox.TierThread, sandbox.TierNamespaces} {
		c, err := sandbox.New(sandbox.Options{Tier: tier}).Confine(protocol.SandboxPolicy{Mode: protocol.SandboxReadOnly}, "/", nil)
		if err != nil {
			b.Logf("%s: %v", tier, err)
			continue
		}
		starters[string(tier)] = c
	}
	var keepers proc.Pool
	defer keepers.Close()
	for name, starter := range starters {
		for keeping, p := range map[string]*proc.Pool{"": nil, "kept-": &keepers} {
			specs[keeping+name] = proc.Spec{Argv: []string{"/bin/true"}, Dir: "/", Env: []string{"PATH=/usr/bin:/bin"}, Starter: starter, Keepers: p}
		}
	}
	took := map[string][]time.Duration{}
	for b.Loop() {
		for name, spec := range specs {
			begin := time.Now()
			if res, err := proc.Run(b.Context(), spec, nil); err != nil || res.ExitCode != 0 {
				b.Fatalf("%+v, %v", res, err)
			}
			took[name] = append(took[name], time.Since(begin))
		}
	}
	median := func(name string) float64 {
		slices.Sort(took[name])
		return float64(took[name][len(took[name])/2])
	}
	for name := range specs {
		if name == "free" {
			b.ReportMetric(median(name)/1e6, "free-ms")
			continue
		}
		b.ReportMetric(median(name)/median("free"), name)
	}
}
