package box

import "github.com/codexmcp/codexmcp/codexserver/internal/run"

// openFolder opens a folder. It fails if the path has a symbolic link by now.
func openFolder(path string) (*folder, error) {
	file, err := run.OpenFolder(path) // closed when it is no longer needed
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	return &folder{path, info, file}, nil
}
