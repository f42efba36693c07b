package box_test

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/internal/run"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/nightly"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"golang.org/x/tools/txtar"
)

var differ = flag.Bool("differ", false, "write down where our sandbox differs from Codex's")

// launched runs a program in our sandbox, under the profile that config.toml chooses.
func launched(t *testing.T, s setting, argv ...string) (string, error) {
	home := filepath.Join(s.top, "codex-home")
	must.OK(t, os.MkdirAll(home, 0o777), os.WriteFile(home+"/config.toml", []byte(s.config), 0o666))
	t.Setenv("HOME", s.home)
	cfg, err := config.Load(config.Layers{Home: home, Call: protocol.Config{Cwd: s.work}})
	must.OK(t, os.RemoveAll(home))
	if err != nil {
		return "", errors.New(strings.ReplaceAll(err.Error(), home, "~"))
	}
	o := box.Options{Profile: cfg.Permitted, Named: cfg.NamedRoots, Private: []string{s.home}}
	if err := o.Keeps(cfg.Permitted); err != nil {
		return "", err
	}
	spec := run.Spec{Argv: argv, Dir: s.work, Env: s.env()}
	if cfg.SandboxMode != protocol.SandboxDangerFullAccess {
		c, err := box.New(o).Confine(cfg.Sandbox(), s.work, s.env())
		if err != nil {
			return "", err
		}
		spec.Confinement = c
	}
	return alone(t, spec, argv)
}

// alone runs a probe, and one for each place by itself if the probe was ended because of what it did with one.
func alone(t *testing.T, spec run.Spec, argv []string) (string, error) {
	const fixed = 3 // the probe and its words
	res, err := boxtest.Starter(t).Run(t.Context(), spec, nil)
	var start *run.StartError
	switch {
	case errors.As(err, &start):
		return "", start
	case err != nil:
		return "", err
	case strings.Contains(res.Stderr, "has come to be"):
	case res.ExitCode != 0:
		return "", fmt.Errorf("exit code %d: %s", res.ExitCode, res.Stderr)
	default:
		return res.Stdout, nil
	}
	for _, word := range argv[fixed:] { // what the probe has left there
		p, err := parsePlace(word)
		must.OK(t, err)
		if p.kind == "new" {
			_ = os.Remove(p.path)
		}
		_ = errors.Join(os.Remove(p.path+"~"), os.Remove(p.path+"/new~"))
	}
	if len(argv) == fixed+1 {
		return "--.---\n", nil
	}
	var out strings.Builder
	for _, word := range argv[fixed:] {
		spec.Argv = append(append([]string{}, argv[:fixed]...), word)
		line, err := alone(t, spec, spec.Argv)
		if err != nil {
			return "", err
		}
		first, _ := bufio.NewReader(strings.NewReader(line)).ReadString('\n')
		fmt.Fprintln(&out, strings.TrimSpace(first))
	}
	return out.String() + "ok", nil
}

// asRoot marks a line about a folder that root lists, and others do not.
const asRoot = " as root"

// forUser returns such a line as it is for this user, without one that makes no difference.
func forUser(line string) string {
	told, rest, _ := strings.Cut(line, " ")
	kept, name, _ := strings.Cut(rest, " ")
	if os.Getuid() != 0 {
		kept = strings.Replace(kept, "l", "-", 1)
	}
	if told == kept {
		return ""
	}
	return told + " " + kept + " " + name + "\n"
}

// TestProfiles compares what our sandbox lets commands do under each profile with what Codex does, and the differences with
// those that are written down, each with its reason.
func TestProfiles(t *testing.T) {
	// A folder in which nothing is has no entry that a command could list.
	entry := must.Get(os.MkdirTemp("/dev/shm", "test"))(t)
	t.Cleanup(func() { must.OK(t, os.Remove(entry)) })
	boxtest.NeedRooms(t)
	const file = "testdata/differences.txtar"
	known, whys, ofRoot := map[string]string{}, map[string]string{}, map[string]bool{}
	for _, f := range must.Get(txtar.ParseFile(file))(t).Files {
		for line := range strings.Lines(string(f.Data)) {
			plain, marked := strings.CutSuffix(line, asRoot+"\n")
			switch {
			case strings.HasPrefix(line, "#"):
				whys[f.Name] += line
			case marked:
				ofRoot[f.Name+" "+plain] = true
				known[f.Name] += forUser(plain)
			default:
				known[f.Name] += line
			}
		}
	}
	var made []txtar.File
	for _, profiles := range profilesFiles {
		for i, p := range readProfiles(t, profiles) {
			if i%nightly.Number(2, 1) != 0 && !*differ {
				continue
			}
			got := p.try(t, launched)
			text := ""
			switch {
			case got.refusal != "" && p.refusal == "":
				text = "refused: " + got.refusal + "\n"
			case got.refusal != "":
			case p.refusal != "":
				text = "Codex: " + p.refusal + "\n"
			default:
				for _, name := range places[p.tree] {
					if told, kept := permits(p.verdicts[name]), permits(got.verdicts[name]); told != kept {
						line := fmt.Sprintf("%s %s %s", told, kept, name)
						if *differ && ofRoot[p.name+" "+line] {
							line += asRoot
						}
						text += line + "\n"
					}
				}
			}
			if text != "" {
				made = append(made, txtar.File{Name: p.name, Data: []byte(whys[p.name] + text)})
			}
			if text != "" && whys[p.name] == "" && !*differ {
				t.Errorf("%s: no line with # says why it differs", p.name)
			}
			if !*differ && text != known[p.name] {
				t.Errorf("%s: Codex, ours, and where\n%swritten down:\n%s", p.name, text, known[p.name])
			}
		}
	}
	if *differ {
		must.OK(t, os.WriteFile(file, txtar.Format(&txtar.Archive{Files: made}), 0o666))
	}
}
