import { render } from "preact";
import { App } from "./app";
import { applyTheme } from "./state";
import "./style.css";

applyTheme();
render(<App />, document.getElementById("page")!);
