"""Text to copy, such as a command: one click copies it, a selection takes all of it.

Streamlit's own code block brings a highlighter of 1.5 MB to every first visit, the largest of its
scripts; commands and links need none.
"""

import html

import streamlit as st

from dashboard.text import plain

_LIMIT = 2000
_BOX = (
    "position:relative;background:rgba(128,128,128,.1);border:1px solid rgba(128,128,128,.2);"
    "border-radius:.3rem"
)
_TEXT = (
    "margin:0;padding:.6rem 4.5rem .6rem .8rem;white-space:pre-wrap;overflow-wrap:anywhere;"
    "background:none;border:0;font-size:.85rem;user-select:all"
)
_BUTTON = (
    "position:absolute;top:.3rem;right:.3rem;padding:.1rem .5rem;font-size:.8rem;cursor:pointer;"
    "color:inherit;background:none;border:1px solid rgba(128,128,128,.5);border-radius:.3rem"
)
# One listener for all buttons of the page. Without https browsers offer no clipboard but the old
# command, which copies what is selected.
_SCRIPT = """<script>
if (!window.bandwatchCopies) {
  window.bandwatchCopies = true;
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("button[data-copies]");
    if (!button) return;
    const text = button.parentElement.querySelector("code");
    getSelection().selectAllChildren(text);
    try {
      if (navigator.clipboard) await navigator.clipboard.writeText(text.textContent);
      else document.execCommand("copy");
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    } catch { button.textContent = "Selected"; }
  });
}
</script>"""


def code(text: str) -> None:
    """Draw text with a button that copies it; line breaks stay, everything else is plain text."""
    lines = "\n".join(plain(line, _LIMIT) for line in text.splitlines())
    st.html(
        f'<div style="{_BOX}"><pre style="{_TEXT}"><code data-copied="yes" style="background:none;'
        f'padding:0">{html.escape(lines)}</code></pre>'
        f'<button type="button" data-copies="yes" style="{_BUTTON}">Copy</button></div>'
    )


def listen() -> None:
    """Make the buttons of this page work; the script is fixed and holds no text of the store."""
    st.html(_SCRIPT, unsafe_allow_javascript=True)
