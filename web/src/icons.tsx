// Drawn for this page: 24 by 24, one stroke.
import type { ComponentChildren } from "preact";

function Icon({ children }: { children: ComponentChildren }) {
  return (
    <svg viewBox="0 0 24 24" width="20" height="20" fill="none" stroke="currentColor" stroke-width="1.7" stroke-linecap="round" stroke-linejoin="round" aria-hidden="true">
      {children}
    </svg>
  );
}

export const Menu = () => <Icon><path d="M4 7h16M4 12h16M4 17h10" /></Icon>;
export const Plus = () => <Icon><path d="M12 5v14M5 12h14" /></Icon>;
export const Bin = () => <Icon><path d="M5 7h14M10 7V5h4v2M7 7l1 12h8l1-12M10.5 11v5M13.5 11v5" /></Icon>;
export const Sliders = () => <Icon><path d="M4 8h9M17 8h3M4 16h3M11 16h9" /><circle cx="15" cy="8" r="2" /><circle cx="9" cy="16" r="2" /></Icon>;
export const Up = () => <Icon><path d="M12 19V6M6 11.5L12 5.5l6 6" /></Icon>;
export const Down = () => <Icon><path d="M12 5v13M6 12.5l6 6 6-6" /></Icon>;
export const Square = () => <Icon><rect x="7.5" y="7.5" width="9" height="9" rx="1.5" fill="currentColor" /></Icon>;
export const Sun = () => <Icon><circle cx="12" cy="12" r="4" /><path d="M12 3v2M12 19v2M3 12h2M19 12h2M5.6 5.6L7 7M17 17l1.4 1.4M5.6 18.4L7 17M17 7l1.4-1.4" /></Icon>;
export const Moon = () => <Icon><path d="M19.5 14.2A8 8 0 0 1 9.8 4.5a8 8 0 1 0 9.7 9.7z" /></Icon>;
export const Half = () => <Icon><circle cx="12" cy="12" r="8" /><path d="M12 4a8 8 0 0 1 0 16z" fill="currentColor" /></Icon>;
export const Cross = () => <Icon><path d="M6.5 6.5l11 11M17.5 6.5l-11 11" /></Icon>;

// Three axes: sequence, depth, width.
export const Mark = ({ size = 24 }: { size?: number }) => (
  <svg class="mark" viewBox="0 0 24 24" width={size} height={size} fill="none" stroke-width="2.2" stroke-linecap="round" aria-hidden="true">
    <path class="axis-a" d="M12 13V3.5" />
    <path class="axis-b" d="M12 13l8.2 4.8" />
    <path class="axis-c" d="M12 13l-8.2 4.8" />
  </svg>
);
