package tool_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/sandbox"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/tool"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// BenchmarkKnownSafe measures a known safe command from the model's call to its result. It
// compares it with the same command when it is confined like any other, by the median of
// pairs.
func BenchmarkKnownSafe(b *testing.B) {
	dir := b.TempDir()
	box := newBox(tool.Options{Environ: environ, Sandbox: tool.Confine(sandbox.New(sandbox.Options{}))})
	run := func(p protocol.ApprovalPolicy, program string) time.Duration {
		turn := box.Turn(tool.Context{
			Cwd: dir, ApprovalPolicy: p, Host: &host{}, SandboxPolicy: protocol.SandboxPolicy{Mode: protocol.SandboxWorkspaceWrite},
		})
		call := shellCall(b, "", program)
		begin := time.Now()
		res, err := turn.Call(b.Context(), call)
		if err != nil || !strings.Contains(res.Output, `"exit_code":0`) {
			b.Fatal(res.Output, err)
		}
		return time.Since(begin)
	}
	var ratios []float64
	for b.Loop() {
		other := run(protocol.ApprovalOnRequest, "/bin/true")
		ratios = append(ratios, float64(run(protocol.ApprovalUntrusted, "true"))/float64(other))
	}
	slices.Sort(ratios)
	b.ReportMetric(ratios[len(ratios)/2], "median-ratio")
}
