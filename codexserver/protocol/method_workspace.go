package protocol

// FuzzyFileSearchParams are the params of fuzzyFileSearch in the folders Roots.
type FuzzyFileSearchParams struct {
	// Query is letters of the path, in order.
	Query string   `json:"query"`
	Roots []string `json:"roots"`
	// CancellationToken ends an earlier search with the same token.
	CancellationToken string `json:"cancellationToken,omitzero"`
}

// FuzzyFileSearchResult is the result of fuzzyFileSearch: the Files that match, best first.
type FuzzyFileSearchResult struct {
	Files []FuzzyFile `json:"files"`
}

// FuzzyFile is one file that matches.
type FuzzyFile struct {
	// Root is the root that it was found in.
	Root string `json:"root"`
	// Path is relative to the root. FileName is its last part.
	Path     string `json:"path"`
	FileName string `json:"file_name"`
	// Score orders the files. Its scale has no meaning.
	Score uint32 `json:"score"`
	// Indices are the positions, in characters, of the matching letters in Path.
	Indices []uint32 `json:"indices,omitzero"`
}
