//go:build cluster

package main

import (
	"bytes"
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/enclosure/enclosuretest"
	"github.com/go-json-experiment/json"
)

var planted = flag.String("planted", "", "only the planted faults whose name matches the `pattern`")

// edit replaces a text of a file of the repository, which has it once.
type edit struct{ file, old, new string }

// plants are faults of the service, and what [TestClusterHistory] must say of them.
var plants = []struct {
	name  string
	edits []edit
	want  string
}{
	{"the next node runs an interrupted command again", []edit{
		{"codexserver/native/compact.go", "				missing = append(missing, answer(call, unfinished))\n", "				continue\n"},
	}, "it ran twice"},
	{"the next node does not ask again", []edit{
		{"codexserver/native/continue.go", "	c.emit(cut.Event())\n", "	c.now.ApprovalPolicy = protocol.ApprovalNever\n	c.emit(cut.Event())\n"},
	}, "nobody accepted it"},
	{"an answer is recorded twice", []edit{
		{"codexserver/internal/approve/board.go", "	b.record(r, &d, evidence{automatic, rule, time.Since(began)})\n", "	b.record(r, &d, evidence{automatic, rule, time.Since(began)})\n	b.record(r, &d, evidence{automatic, rule, time.Since(began)})\n"},
	}, "a question has two decisions"},
	{"a front sends a request again that may have had an effect", []edit{
		{"codexserver/gateway/internal/front/front.go", "		if !errors.Is(err, link.ErrAbsent) && !errors.Is(err, link.ErrRefused) {\n", "		if r.Context().Err() != nil {\n"},
		{"codexserver/gateway/internal/front/front.go", "		if time.Since(began) > retryTimeout {\n", "		if time.Since(began) > 8*retryTimeout {\n"},
	}, "two conversations have the|it ran twice"},
	{"a front confuses users", []edit{
		{"codexserver/gateway/internal/front/front.go", "	began := time.Now()\n	for {\n",
			"	began := time.Now()\n	if began.UnixNano()/1000%64 == 0 {\n		for other := range f.users.All() {\n			user, head.User, head.Sender = other, other, other\n		}\n	}\n	for {\n"},
	}, "got a text about|its task is gone|no such task|nobody called|request for"},
	{"a node answers requests with another epoch", []edit{
		{"codexserver/gateway/internal/lease/holder.go", "x.gone != nil || x.lease.Epoch != epoch ||", "x.gone != nil ||"},
	}, "a node has answered a request"},
	{"a node works on after its lease", []edit{
		{"codexserver/gateway/internal/lease/holder.go", "return h.term == 0 || h.leases.ttl > 0 && h.o.Clock() >= h.deadline", "return h.term == 0"},
		{"codexserver/gateway/internal/lease/holder.go", "h.o.Renewed(user, deadline)", "h.o.Renewed(user, deadline+time.Hour)"},
	}, "two workers work at the same time|a node has answered a request"},
	{"a node writes on after its lease", []edit{
		{"codexserver/gateway/internal/lease/holder.go", "return h.term == 0 || h.leases.ttl > 0 && h.o.Clock() >= h.deadline", "return h.term == 0"},
		{"codexserver/gateway/internal/lease/holder.go", "h.o.Renewed(user, deadline)", "h.o.Renewed(user, deadline+time.Hour)"},
		{"codexserver/gateway/internal/jetstore/jetstore.go", "if s.index.epoch > s.epoch {", "if false {"},
		{"codexserver/gateway/internal/jetstore/index.go", "if s.index.epoch > s.epoch {", "if false {"},
	}, "has written .* after one with"},
	{"a task is not kept", []edit{
		{"codexserver/gateway/internal/jetstore/jetstore.go", "	if err := checkWrite(name, data, store.MaxValue); err != nil {\n		return err\n	}\n",
			"	if err := checkWrite(name, data, store.MaxValue); err != nil || strings.Contains(name, \"/tasks/\") {\n		return err\n	}\n"},
	}, "its task is gone"},
}

// plantedTries is how often the service is tried with a fault. A fault may need some luck.
const plantedTries = 3

// TestPlanted plants faults in the programs, and checks that TestClusterHistory finds each of them.
func TestPlanted(t *testing.T) {
	enclosuretest.Need(t)
	only := regexp.MustCompile(*planted)
	for _, plant := range plants {
		t.Run(plant.name, func(t *testing.T) {
			if !only.MatchString(plant.name) {
				t.Skip("-planted names others")
			}
			file := plantOverlay(t, plant.edits)
			for try := range plantedTries {
				begun := time.Now()
				out, failed := findPlanted(t, file)
				if bytes.Contains(out, []byte("go build")) && bytes.Contains(out, []byte("exit status 1")) {
					t.Fatalf("%s", out)
				}
				found := regexp.MustCompile(`(?m)^.*(` + plant.want + `).*$`).Find(out)
				if failed && found != nil {
					t.Logf("found after %d tries, the last in %v: %.300s", try+1, time.Since(begun).Round(time.Second), bytes.TrimSpace(found))
					return
				}
				t.Logf("try %d: not found; it failed: %v\n%s", try+1, failed, bytes.Join(regexp.MustCompile(`(?m)^ +\w+_cluster_test.go:.{0,300}`).FindAll(out, -1), []byte("\n")))
			}
			t.Error("not found")
		})
	}
}

// plantEdits returns the files with edits, by path.
func plantEdits(t *testing.T, edits []edit) map[string]string {
	t.Helper()
	top, err := filepath.Abs("../../../..")
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for _, e := range edits {
		path := filepath.Join(top, e.file)
		if _, known := texts[path]; !known {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			texts[path] = string(text)
		}
		if strings.Count(texts[path], e.old) != 1 {
			t.Errorf("%s does not have %q once", e.file, e.old)
		}
		texts[path] = strings.Replace(texts[path], e.old, e.new, 1)
	}
	return texts
}

// plantOverlay returns the file that makes go build take the files with edits.
func plantOverlay(t *testing.T, edits []edit) string {
	t.Helper()
	dir := t.TempDir()
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	for path, text := range plantEdits(t, edits) {
		overlay.Replace[path] = filepath.Join(dir, filepath.Base(path))
		if err := os.WriteFile(overlay.Replace[path], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text, err := json.Marshal(overlay)
	file := filepath.Join(dir, "overlay.json")
	if err == nil {
		err = os.WriteFile(file, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// TestClusterPlants checks that the faults of TestPlanted, which takes hours, can still be planted and compile.
func TestClusterPlants(t *testing.T) {
	for _, plant := range plants {
		overlay := plantOverlay(t, plant.edits)
		for _, e := range plant.edits {
			build := exec.Command("go", "build", "-overlay="+overlay, ".")
			build.Dir = filepath.Join("../../../..", filepath.Dir(e.file))
			if out, err := build.CombinedOutput(); err != nil {
				t.Errorf("%s: %v\n%s", plant.name, err, out)
			}
		}
	}
}

// findPlanted runs TestClusterHistory with an overlay, and returns its output, and whether it
// failed.
func findPlanted(t *testing.T, overlay string) (out []byte, failed bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestClusterHistory$", "-test.timeout=19m")
	flag.Visit(func(f *flag.Flag) {
		if !strings.HasPrefix(f.Name, "test.") {
			cmd.Args = append(cmd.Args, "-"+f.Name+"="+f.Value.String())
		}
	})
	cmd.Env = append(os.Environ(), "GOFLAGS="+os.Getenv("GOFLAGS")+" -overlay="+overlay)
	out, err := cmd.CombinedOutput()
	return out, err != nil
}
