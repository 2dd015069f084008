// Says on paper where the page is from and when it was printed.

window.addEventListener("beforeprint", () => {
  const line = document.getElementById("printed");
  line.textContent = `Printed from ${location.href} at ${new Date().toISOString().replace(/\.\d+Z$/, "Z")}`;
});
