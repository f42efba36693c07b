package box

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/codexmcp/codexmcp/codexserver/internal/permission"
	"github.com/codexmcp/codexmcp/codexserver/internal/run"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/paths"
)

// Roots are the folders that a policy leaves writable.
type Roots struct {
	Paths   []string  // absolute and free of symbolic links
	Notes   []string  // sentences for the user about folders that the policy names and that are not writable
	folders []*folder // of Paths
}

// AskedRoots returns the folders that should be writable under a policy for a command in cwd with the environment env,
// by the policy's names. Not all of them become writable: see [Sandbox.Roots].
func AskedRoots(policy protocol.SandboxPolicy, cwd string, env []string) (names []string) {
	if policy.Mode != protocol.SandboxWorkspaceWrite {
		return nil
	}
	all := append([]string{cwd}, policy.WritableRoots...)
	if !policy.ExcludeSlashTmp && runtime.GOOS != "windows" {
		all = append(all, "/tmp")
	}
	if !policy.ExcludeTmpdirEnvVar {
		all = append(all, run.Value(env, "TMPDIR"))
	}
	for _, dir := range all {
		if filepath.IsAbs(dir) {
			names = append(names, filepath.Clean(dir))
		}
	}
	return names
}

// Writable returns the folders of [AskedRoots] without symbolic links.
func Writable(policy protocol.SandboxPolicy, cwd string, env []string) []string {
	folders := AskedRoots(policy, cwd, env)
	for i, folder := range folders {
		folders[i] = paths.Real(folder)
	}
	return folders
}

// Roots returns the folders that a policy leaves writable for a command in cwd with the environment env, whether or not
// this system can enforce the policy. Full access has no roots. The error wraps [ErrReplaced].
func (s *Sandbox) Roots(policy protocol.SandboxPolicy, cwd string, env []string) (Roots, error) {
	return s.roots(s.Permitted(cwd, env), policy, cwd, env)
}

func (s *Sandbox) roots(
	set *permission.Set, policy protocol.SandboxPolicy, cwd string, env []string,
) (Roots, error) {
	names := s.asked(set, policy, cwd, env)
	policy.ExcludeSlashTmp, policy.ExcludeTmpdirEnvVar = true, true
	named := len(s.asked(set, policy, cwd, env)) // these come first; a note about another would surprise
	var roots Roots
	folders, errs := s.options.Programs.judge(names, s.refuse)
	for i, err := range errs {
		switch {
		case errors.Is(err, ErrReplaced):
			return Roots{}, err
		case err == nil:
			if path := folders[i].path; !slices.Contains(roots.Paths, path) {
				roots.Paths = append(roots.Paths, path)
				roots.folders = append(roots.folders, folders[i])
			}
		case i < named && !errors.Is(err, fs.ErrNotExist):
			note := fmt.Sprintf("%s is read-only for commands: %v", names[i], err)
			if !slices.Contains(roots.Notes, note) {
				roots.Notes = append(roots.Notes, note)
			}
		}
	}
	return roots, nil
}

// refuse returns nil, or the reason why the folder at path must not become writable under name.
func (s *Sandbox) refuse(name, path string, info fs.FileInfo) error {
	for _, own := range s.options.Sealed {
		if below(path, own) {
			return fmt.Errorf("it is or lies in %s, which is this server's", own)
		}
	}
	for _, own := range s.options.Named {
		if own = filepath.Clean(own); own == name || own == path {
			return nil
		}
	}
	const remedy = "sandbox_workspace_write.writable_roots in config.toml can name it"
	if filepath.Dir(path) == path {
		return errors.New("it is the whole file system; " + remedy)
	}
	for _, system := range []string{"/dev", "/proc", "/sys"} {
		if below(path, system) && !below(path, "/dev/shm") {
			return fmt.Errorf("it belongs to the system's %s; %s", system, remedy)
		}
	}
	if inGitFolder(path) {
		return errors.New("it is a git folder or lies in one; " + remedy)
	}
	for _, own := range s.options.Protected {
		if real, err := filepath.EvalSymlinks(own); err == nil && real != path && below(path, real) &&
			!below(filepath.Dir(path), s.options.Trees) {
			return fmt.Errorf("it lies in %s; %s", own, remedy)
		}
	}
	for _, private := range s.options.Private {
		if passed, _ := passes(private, []os.FileInfo{info}); passed { // by the link and by its target
			return fmt.Errorf("it is or holds %s; %s", private, remedy)
		}
	}
	return nil
}
